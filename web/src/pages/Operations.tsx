import { useAtomValue } from 'jotai';
import { useDeferredValue, useMemo } from 'react';
import { Link } from 'wouter';
import type { Environment } from '../api/schema';
import { causesOf, slowOf, underWaySince, type Group } from '../kinds/causes';
import { endOf, isHeld } from '../kinds/lifecycle';
import { kindPath, type KindMetadata, type OfKind } from '../kinds/metadata';
import { toneOf, type Tone } from '../kinds/tone';
import { pageOf } from '../kinds/paths';
import { compare, count } from '../kinds/format';
import { Ago } from '../components/Ago';
import { Costs } from '../components/Costs';
import { CauseWords } from '../components/CauseWords';
import { EndVerb, HourlyPrice } from '../components/End';
import { Fold } from '../components/Fold';
import { Icon } from '../components/Icon';
import { Page } from '../components/Page';
import { Pill } from '../components/Pill';
import { allAtom, syncedAtom } from '../state/environments';
import { nowAtom } from '../state/now';
import { kindMetadataAtom } from '../state/session';
import { Opening } from './StatusPages';

/** For operators: all tenants that the user may see, current failures and their causes. */
export default function OperationsPage() {
  const all = useDeferredValue(useAtomValue(allAtom));
  const synced = useAtomValue(syncedAtom);
  const now = useAtomValue(nowAtom);
  const causes = useMemo(() => causesOf(all, now), [all, now]);
  const known = useAtomValue(kindMetadataAtom);
  const ends = useMemo(
    () =>
      nextEnds(
        all.filter((environment) => !isHeld(environment, known(environment).claim)),
        now,
      ),
    [all, known, now],
  );
  const slow = useMemo(() => slowOf(all, now), [all, now]);
  return (
    <Page title="Operations" lead="All environments you can see, across namespaces.">
      {!synced ? (
        <Opening says="Loading environments…" />
      ) : (
        <>
          <Sums all={all} />
          <Costs all={all} />
          <section aria-labelledby="next">
            <h2 id="next">Expires next</h2>
            {ends.length === 0 ? (
              <p className="quiet">No environment has an end in the future.</p>
            ) : (
              <Ends all={ends} />
            )}
          </section>
          <section aria-labelledby="failing">
            <h2 id="failing">Failing</h2>
            {causes.length === 0 ? (
              <AllWell words="None" />
            ) : (
              <ul className="causes">
                {causes.map((group) => (
                  <CauseItem key={group.cause.group} of={group} />
                ))}
              </ul>
            )}
          </section>
          <section aria-labelledby="slow">
            <h2 id="slow">In progress for over 30 minutes</h2>
            {slow.length === 0 ? <AllWell words="None" /> : <Slow all={slow} />}
          </section>
          <section aria-labelledby="tenants">
            <h2 id="tenants">Tenants</h2>
            <Tenants all={all} />
          </section>
        </>
      )}
    </Page>
  );
}

const TONES: [Tone, string][] = [
  ['bad', 'failing'],
  ['busy', 'in progress'],
  ['good', 'ready'],
  ['idle', 'stopped or paused'],
  ['leaving', 'being deleted'],
];

function sum(all: readonly Environment[], tone: Tone): number {
  return all.filter((environment) => toneOf(environment) === tone).length;
}

function Sums({ all }: { all: readonly Environment[] }) {
  return (
    <dl className="sums">
      {TONES.map(([tone, word]) => (
        <div key={tone} data-tone={tone} data-none={sum(all, tone) === 0 || undefined}>
          <dt>{word}</dt>
          <dd>{sum(all, tone)}</dd>
        </div>
      ))}
    </dl>
  );
}

function CauseItem({ of: { cause, message, kinds, hits, since } }: { of: Group }) {
  return (
    <li className="cause">
      <div className="cause-head">
        <strong>
          {count(new Set(hits.map(({ environment }) => environment.uid)).size, 'environment')}
        </strong>
        <span className="small">
          {kinds.join(', ')}
          {since !== '' && (
            <>
              {' '}
              · since <Ago at={since} />
            </>
          )}
        </span>
      </div>
      <CauseWords cause={cause} />
      {message !== '' && (
        <Fold className="more" summary="Message of the provider">
          <blockquote className="words">{message}</blockquote>
        </Fold>
      )}
      <ul className="chips" aria-label="Where">
        {hits.map(({ environment, part }) => (
          <li key={`${environment.uid} ${part?.slot ?? ''}`}>
            <Link href={pageOf(environment)}>
              {environment.namespace}/{environment.name}
            </Link>
            {part && <span className="small"> {part.slot}</span>}
          </li>
        ))}
      </ul>
    </li>
  );
}

/** How many of the next ends are listed. */
const NEXT = 10;

/** The environments that end next. Ends that have passed are left out. */
function nextEnds(all: readonly Environment[], now: number): Environment[] {
  const at = (environment: Environment) => endOf(environment)?.at ?? '';
  return all
    .filter((environment) => Date.parse(at(environment)) > now)
    .sort((a, b) => compare(at(a), at(b)))
    .slice(0, NEXT);
}

function Ends({ all }: { all: readonly Environment[] }) {
  return (
    <ul className="lines">
      {all.map((environment) => {
        const end = endOf(environment)!;
        return (
          <li key={environment.uid}>
            <Pill tone={toneOf(environment)} word={environment.phase} />
            <Link href={pageOf(environment)}>
              {environment.namespace}/{environment.name}
            </Link>
            <span className="grow">
              <EndVerb end={end} />
            </span>
            <span className="small">
              {environment.owner ?? 'No owner'} · <HourlyPrice of={environment} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function Slow({ all }: { all: readonly Environment[] }) {
  return (
    <ul className="lines">
      {all.map((environment) => (
        <li key={environment.uid}>
          <Pill tone={toneOf(environment)} word={environment.phase} />
          <Link href={pageOf(environment)}>
            {environment.namespace}/{environment.name}
          </Link>
          <span className="grow">{environment.message}</span>
          <span className="small">
            <Ago at={underWaySince(environment)} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Tenants({ all }: { all: readonly Environment[] }) {
  const known = useAtomValue(kindMetadataAtom);
  const tenants = [...new Set(all.map(({ namespace }) => namespace))].sort();
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="scroll" tabIndex={0} role="region" aria-label="Table of tenants">
      <table>
        <thead>
          <tr>
            <th scope="col">Namespace</th>
            <th scope="col">Environments</th>
            {TONES.map(([tone, word]) => (
              <th key={tone} scope="col" className="number">
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tenants.map((tenant) => {
            const own = all.filter(({ namespace }) => namespace === tenant);
            return (
              <tr key={tenant}>
                <th scope="row">
                  <Link href={`/?owner=*&q=${encodeURIComponent(tenant)}`}>{tenant}</Link>
                </th>
                <td className="list">{sumOf(own, known)}</td>
                {TONES.map(([tone]) => (
                  <td key={tone} className="number" data-tone={tone}>
                    {sum(own, tone) || <span className="quiet">0</span>}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** The number of environments of each kind: `2 × GPU workspace, 1 × GPU stock pool`. */
function sumOf(all: readonly Environment[], known: (of: OfKind) => KindMetadata): string {
  const one = new Map(all.map((environment) => [kindPath(environment), environment]));
  return [...one]
    .map(
      ([path, some]) =>
        `${all.filter((other) => kindPath(other) === path).length} × ${known(some).title}`,
    )
    .join(', ');
}

function AllWell({ words }: { words: string }) {
  return (
    <p className="well">
      <Icon name="check" /> {words}
    </p>
  );
}
