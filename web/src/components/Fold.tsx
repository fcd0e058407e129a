import { useState, type ReactNode } from 'react';

interface Props {
  className: string;
  summary: ReactNode;
  /** Whether the content has an error that the user must see. */
  wrong?: boolean;
  children: ReactNode;
}

/**
 * Collapsed content. An error in the content opens it. It stays open after the error is fixed, so
 * that no element moves while the user works.
 */
export function Fold({ className, summary, wrong = false, children }: Props) {
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
