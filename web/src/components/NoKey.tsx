import { Link } from 'wouter';
import { fieldTitle, isKeyless, keysOf, type Data, type Schema } from '../kinds/schema';

/** Warns that the machine would accept no SSH key. */
export function NoKey({ schema, data }: { schema: Schema; data: Data }) {
  const path = keysOf(schema);
  if (!path || !isKeyless(data, path)) return null;
  return (
    <p className="note" role="note">
      No SSH key: you will connect by AWS Session Manager. Add a key under{' '}
      {fieldTitle(schema, path)}, or save it in <Link href="/keys">your list of keys</Link> for all
      new workspaces. Keys cannot be added later.
    </p>
  );
}
