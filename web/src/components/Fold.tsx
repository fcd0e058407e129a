import { useState, type ReactNode } from 'react';

interface Props {
  className: string;
  summary: ReactNode;
  /** Whether something within needs to be seen. */
  wrong: boolean;
  children: ReactNode;
}

/**
 * What is folded away until it is wanted. What is wrong within unfolds it; it stays unfolded when
 * that is mended, so that nothing goes from under anybody's hands.
 */
export function Fold({ className, summary, wrong, children }: Props) {
  const [open, setOpen] = useState(wrong);
  const [known, setKnown] = useState(wrong);
  if (wrong !== known) {
    setKnown(wrong);
    if (wrong) setOpen(true);
  }
  return (
    <details
      className={className}
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{summary}</summary>
      {children}
    </details>
  );
}
