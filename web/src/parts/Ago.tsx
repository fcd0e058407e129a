import { useAtomValue } from 'jotai';
import { ago, exactly } from '../kinds/words';
import { nowAtom } from '../state/now';

/** How long ago something was; the exact time on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useAtomValue(nowAtom);
  const time = Date.parse(at ?? '');
  if (Number.isNaN(time)) return null;
  return (
    <time dateTime={at!} title={exactly(time)}>
      {ago(time, now)}
    </time>
  );
}
