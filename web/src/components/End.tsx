import type { Environment } from '../api/schema';
import { endOf, isHeld, type End as NextEnd } from '../kinds/lifecycle';
import { hourly, isNotCreated, priceNow } from '../kinds/prices';
import { exactly, until } from '../kinds/format';
import { nowAtom } from '../state/now';
import { useKindMetadata } from '../state/useKindMetadata';
import { useValue } from '../state/useValue';
import { Ago } from './Ago';

/** The time until a time, with the exact time on hover. `over` replaces a time that has passed. */
export function Until({ at, over }: { at: string; over: string }) {
  const time = Date.parse(at);
  const words = useValue(nowAtom, (now) => until(time, now));
  return (
    <time dateTime={at} title={exactly(time)}>
      {words === '' ? over : `in ${words}`}
    </time>
  );
}

/** The words before a time that is ahead, and the words for an end that has passed. */
type EndWords = Record<NextEnd['action'], [ahead: string, passed: string]>;

/** The words on a card. */
const SHORT: EndWords = {
  stops: ['Stops', 'Stop is due'],
  expires: ['Expires', 'Expired'],
  'is deleted': ['Deleted', 'Deletion is due'],
};

/** The words that follow a subject. */
const VERBS: EndWords = {
  stops: ['stops', 'is due to be stopped'],
  expires: ['expires', 'expired'],
  'is deleted': ['is deleted', 'is due to be deleted'],
};

function Words({ end: { at, action }, of }: { end: NextEnd; of: EndWords }) {
  const time = Date.parse(at);
  const isAhead = useValue(nowAtom, (now) => until(time, now) !== '');
  const [ahead, passed] = of[action];
  if (isAhead)
    return (
      <>
        {ahead} <Until at={at} over="now" />
      </>
    );
  // An environment that expired continues. A stop or deletion that is due has not happened yet.
  if (action === 'expires')
    return (
      <>
        {passed} <Ago at={at} />
      </>
    );
  return (
    <time dateTime={at} title={exactly(time)}>
      {passed}
    </time>
  );
}

/** When a subject ends, and how: `stops in 25 min`, `expired 7 days ago`. */
export function EndVerb({ end }: { end: NextEnd }) {
  return <Words end={end} of={VERBS} />;
}

/** When an environment ends, and how. Empty for an older schema revision. */
export function End({ of }: { of: Environment }) {
  const { claim } = useKindMetadata(of);
  const end = endOf(of);
  if (!of.lifecycle || of.deletedAt) return null;
  if (isHeld(of, claim)) return <span>Paused, does not end</span>;
  if (!end) return <span>{of.power === 'Stopped' ? 'Stopped' : 'No end'}</span>;
  return (
    <span>
      <Words end={end} of={SHORT} />
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
