import { useAtomValue } from 'jotai';
import { useEffect, useRef, type ReactNode } from 'react';
import { arrivalAtom } from '../state/notices';

interface Props {
  title: string;
  /** Content above the title, for example a link back. */
  above?: ReactNode;
  /** Content next to the title. */
  beside?: ReactNode;
  lead?: ReactNode;
  children: ReactNode;
}

let first = true;

/**
 * A page with a title, which is also the window's. After navigation the title gets the focus, so
 * that screen readers announce it.
 */
export function Page({ title, above, beside, lead, children }: Props) {
  const arrival = useAtomValue(arrivalAtom);
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
      <title>{`${arrival || title} · Paved Road`}</title>
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

/** Moves the focus to the page's title, because the focused element was removed. */
export function focusTitle(): void {
  document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
}
