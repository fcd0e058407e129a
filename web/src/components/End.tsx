import type { Environment } from '../api/schema';
import { endOf, isHeld } from '../kinds/lifecycle';
import { hourly, isNotCreated, priceNow } from '../kinds/prices';
import { exactly, until } from '../kinds/format';
import { nowAtom } from '../state/now';
import { useKindMetadata } from '../state/useKindMetadata';
import { useValue } from '../state/useValue';

/** The time until a time; the exact time on hover. `over` stands there once it has come. */
export function Until({ at, over = 'now' }: { at: string; over?: string }) {
  const time = Date.parse(at);
  const words = useValue(nowAtom, (now) => until(time, now));
  return (
    <time dateTime={at} title={exactly(time)}>
      {words === '' ? over : `in ${words}`}
    </time>
  );
}

const ACTIONS = { stops: 'Stops', expires: 'Expires', 'is deleted': 'Deleted' } as const;

/** When an environment ends, and how. Empty for an older schema revision. */
export function End({ of }: { of: Environment }) {
  const { claim } = useKindMetadata(of);
  const end = endOf(of);
  if (!of.lifecycle || of.deletedAt) return null;
  if (isHeld(of, claim)) return <span>Paused, does not end</span>;
  if (!end) return <span>{of.power === 'Stopped' ? 'Stopped' : 'No end'}</span>;
  return (
    <span>
      {ACTIONS[end.action]} <Until at={end.at} />
    </span>
  );
}

/** The price of an environment by the hour at its power state. */
export function HourlyPrice({ of }: { of: Environment }) {
  const price = priceNow(of);
  return (
    <span>
      {hourly(price)}
      {price !== undefined && isNotCreated(of) && ' once it runs'}
    </span>
  );
}
