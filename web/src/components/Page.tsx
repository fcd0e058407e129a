import { useEffect, useRef, type ReactNode } from 'react';

interface Props {
  title: string;
  /** What stands above the title, such as the way back. */
  above?: ReactNode;
  /** What stands beside the title. */
  beside?: ReactNode;
  lead?: ReactNode;
  children: ReactNode;
}

let first = true;

/** A page: its title is the window's too, and whoever comes from another page hears it. */
export function Page({ title, above, beside, lead, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!first) {
      heading.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    first = false;
  }, []);
  return (
    <>
      <title>{`${title} · Paved Road`}</title>
      {above}
      <div className="head">
        <div className="head-words">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {lead && <p className="lead">{lead}</p>}
        </div>
        {beside && <div className="head-beside">{beside}</div>}
      </div>
      {children}
    </>
  );
}

/** Brings the keyboard to the page's title, from what is gone. */
export function focusTitle(): void {
  document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
}
