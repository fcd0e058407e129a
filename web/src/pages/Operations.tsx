import { useAtomValue } from 'jotai';
import { useDeferredValue, useMemo } from 'react';
import { Link } from 'wouter';
import type { Environment } from '../api/schema';
import { causesOf, slowOf, underWaySince, type Group } from '../kinds/causes';
import { kindPath, type KindMetadata, type OfKind } from '../kinds/metadata';
import { toneOf, type Tone } from '../kinds/tone';
import { pageOf } from '../kinds/paths';
import { count } from '../kinds/format';
import { Ago } from '../components/Ago';
import { CauseWords } from '../components/CauseWords';
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
  const slow = useMemo(() => slowOf(all, now), [all, now]);
  return (
    <Page title="Operations" lead="All environments you can see, across namespaces.">
      {!synced ? (
        <Opening says="Loading environments…" />
      ) : (
        <>
          <Sums all={all} />
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
  ['idle', 'paused or at zero'],
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
