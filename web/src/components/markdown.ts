import type { ReactNode } from 'react';

/**
 * Stands for the parser of Markdown that react-jsonschema-form brings along, which is as large as
 * the form: schemas' descriptions are plain
 * text, and only what that says of a schema it cannot show goes through here, which reads well
 * without its marks.
 */
export function Markdown({ children }: { children: ReactNode }): ReactNode {
  return typeof children === 'string' ? children.replace(/`|(?<=: )_|_(?=\.$)/g, '') : children;
}
