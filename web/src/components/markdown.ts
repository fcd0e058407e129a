import type { ReactNode } from 'react';

/**
 * Replaces the Markdown parser of react-jsonschema-form, which is as large as the form.
 * Descriptions in schemas are plain text. Only the library's messages about unsupported schemas use
 * Markdown, and they are readable without it.
 */
export function Markdown({ children }: { children: ReactNode }): ReactNode {
  return typeof children === 'string' ? children.replace(/`|(?<=: )_|_(?=\.$)/g, '') : children;
}
