import { useAtomValue } from 'jotai';
import { useDeferredValue, useMemo } from 'react';
import { Link } from 'wouter';
import type { Environment } from '../api/schema';
import { causesOf, slowOf, underWaySince, type Group } from '../kinds/causes';
import { endOf } from '../kinds/lifecycle';
import { kindPath, type Known, type OfKind } from '../kinds/known';
import { moodOf, type Mood } from '../kinds/mood';
import { pageOf } from '../kinds/paths';
import { compare, count } from '../kinds/words';
import { Ago } from '../parts/Ago';
import { Costs } from '../parts/Costs';
import { CauseWords } from '../parts/CauseWords';
import { HourlyPrice, Until } from '../parts/End';
import { Icon } from '../parts/Icon';
import { Page } from '../parts/Page';
import { Pill } from '../parts/Pill';
import { allAtom, syncedAtom } from '../state/environments';
import { nowAtom } from '../state/now';
import { knownAtom } from '../state/session';
import { Opening } from './States';

/** For those who run the platform: every tenant that they may see, what fails now, and why. */
export default function OperationsPage() {
  const all = useDeferredValue(useAtomValue(allAtom));
  const synced = useAtomValue(syncedAtom);
  const now = useAtomValue(nowAtom);
  const causes = useMemo(() => causesOf(all, now), [all, now]);
  const ends = useMemo(() => nextEnds(all), [all]);
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
            <h2 id="next">Next ends</h2>
            {ends.length === 0 ? (
              <p className="quiet">No environment has an end.</p>
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

const MOODS: [Mood, string][] = [
  ['bad', 'failing'],
  ['busy', 'in progress'],
  ['good', 'ready'],
  ['idle', 'stopped or paused'],
  ['leaving', 'being deleted'],
];

function sum(all: readonly Environment[], mood: Mood): number {
  return all.filter((environment) => moodOf(environment) === mood).length;
}

function Sums({ all }: { all: readonly Environment[] }) {
  return (
    <dl className="sums">
      {MOODS.map(([mood, word]) => (
        <div key={mood} data-mood={mood} data-none={sum(all, mood) === 0 || undefined}>
          <dt>{word}</dt>
          <dd>{sum(all, mood)}</dd>
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
      {message !== '' && <blockquote className="words">{message}</blockquote>}
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

/** The environments that end next. */
function nextEnds(all: readonly Environment[]): Environment[] {
  const at = (environment: Environment) => endOf(environment)?.at ?? '';
  return all
    .filter((environment) => at(environment) !== '')
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
            <Pill mood={moodOf(environment)} word={environment.phase} />
            <Link href={pageOf(environment)}>
              {environment.namespace}/{environment.name}
            </Link>
            <span className="grow">
              {end.action} <Until at={end.at} />
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
          <Pill mood={moodOf(environment)} word={environment.phase} />
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
  const known = useAtomValue(knownAtom);
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
            {MOODS.map(([mood, word]) => (
              <th key={mood} scope="col" className="number">
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
                {MOODS.map(([mood]) => (
                  <td key={mood} className="number" data-mood={mood}>
                    {sum(own, mood) || <span className="quiet">0</span>}
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

/** How many of each kind there are: `2 × GPU workspace, 1 × GPU stock pool`. */
function sumOf(all: readonly Environment[], known: (of: OfKind) => Known): string {
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
