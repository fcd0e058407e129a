import { ago, exactly } from '../kinds/format';
import { nowAtom } from '../state/now';
import { useValue } from '../state/useValue';

/** A relative time, with the exact time on hover. */
export function Ago({ at }: { at: string | null | undefined }) {
  const time = Date.parse(at ?? '');
  const words = useValue(nowAtom, (now) => (Number.isNaN(time) ? '' : ago(time, now)));
  if (!words) return null;
  return (
    <time dateTime={at!} title={exactly(time)}>
      {words}
    </time>
  );
}
