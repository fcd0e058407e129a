import { Button } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { changed } from '../kinds/changes';
import { fieldTitle, networksOf, type Data, type Schema } from '../kinds/schema';
import { meAtom } from '../state/session';
import { networkOf } from './Unreachable';

/** Warns that SSH is blocked for all addresses, and offers to allow the user's own address. */
export function AllowAddress({
  schema,
  data,
  onChange,
}: {
  schema: Schema;
  data: Data;
  onChange: (data: Data) => void;
}) {
  const network = networkOf(useAtomValue(meAtom)?.address);
  const path = networksOf(schema);
  if (!path) return null;
  return (
    <div className="note" role="note">
      <p>SSH is closed: no network is allowed. Add one under {fieldTitle(schema, path)}.</p>
      {network && (
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => onChange(changed(data, [{ path, value: [network] }]))}
        >
          Allow my address ({network})
        </Button>
      )}
    </div>
  );
}
