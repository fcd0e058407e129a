import { Button, Skeleton } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useEffect, useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { answer, api } from '../api/client';
import type { Kind } from '../api/schema';
import { kindPath, Picture } from '../kinds/metadata';
import { asked, takesKeys } from '../kinds/schema';
import { Icon } from '../components/Icon';
import { KindsAlert } from '../components/KindsAlert';
import { Loaded, onDemand } from '../components/onDemand';
import { Page } from '../components/Page';
import { ProblemAlert } from '../components/ProblemAlert';
import { useRequest, type RequestState } from '../state/useRequest';
import { kindsAtom, kindsErrorAtom, kindMetadataAtom } from '../state/session';
import { Opening } from './StatusPages';

/** The form's libraries are as large as the rest of the portal, so they are loaded on demand. */
const CreateForm = onDemand(() => import('./CreateForm'));

/** The user chooses a kind, then fills in its form. The description is visible before the form. */
export function CreatePage() {
  const kinds = useAtomValue(kindsAtom);
  const known = useAtomValue(kindMetadataAtom);
  const [search] = useSearchParams();
  const chosen = search.get('kind');
  // The keys are requested in parallel with the kinds, before the kind is known.
  const keys = useRequest('keys', () => answer(api.GET('/api/v1/keys')));
  useEffect(() => void CreateForm.load(), []);
  if (!kinds) return <Unknown />;
  const kind =
    chosen === null
      ? undefined
      : kinds.find((one) => kindPath(one) === chosen || one.plural === chosen);
  if (!kind) return <Choose kinds={kinds} unknown={chosen} />;
  return (
    <Page
      key={kindPath(kind)}
      title={`New ${known(kind).title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())}`}
      lead={kind.description}
      above={
        <Link href="/new" className="back">
          <Icon name="back" size={16} /> All templates
        </Link>
      }
    >
      <Loaded fallback={<Coming />}>
        {!kind.schema ? (
          <Undescribed />
        ) : takesKeys(asked(kind)) ? (
          <WithKeys kind={kind} asked={keys} />
        ) : (
          <CreateForm kind={kind} keys={[]} />
        )}
      </Loaded>
    </Page>
  );
}

/**
 * A form that starts with the user's keys. A machine that was created without keys gives no access,
 * and must be created again.
 */
function WithKeys({
  kind,
  asked: { data, error, again },
}: {
  kind: Kind;
  asked: RequestState<{ keys: string[] }>;
}) {
  const [without, setWithout] = useState(false);
  if (data || without) return <CreateForm kind={kind} keys={data?.keys ?? []} />;
  if (error === undefined) return <Coming />;
  return (
    <div className="stack">
      <ProblemAlert title="Could not load your SSH keys" error={error} again={again} />
      <div className="buttons">
        <Button variant="default" onClick={() => setWithout(true)}>
          Continue without keys
        </Button>
      </div>
    </div>
  );
}

/** The kind is known, but its schema is not. */
function Undescribed() {
  return (
    <p className="quiet" role="status">
      Could not load the form. Try again in a moment, or ask your platform team.
    </p>
  );
}

/** Shown until the kinds are known. */
function Unknown() {
  const error = useAtomValue(kindsErrorAtom);
  if (error === undefined) return <Opening says="Loading templates…" />;
  return (
    <Page title="New environment">
      <KindsAlert error={error} />
    </Page>
  );
}

/** The placeholder for the form. */
function Coming() {
  return (
    <div className="two" role="status">
      <Skeleton height={640} />
      <Skeleton height={320} />
      <span className="unseen">Loading…</span>
    </div>
  );
}

function Choose({ kinds: all, unknown }: { kinds: readonly Kind[]; unknown: string | null }) {
  const known = useAtomValue(kindMetadataAtom);
  const kinds = all.filter((kind) => kind.offered);
  const isTwice = (kind: Kind) =>
    kinds.some((other) => other !== kind && known(other).title === known(kind).title);
  const lead = [unknown !== null && `This cluster has no kind ${unknown}.`, 'What do you need?'];
  return (
    <Page title="New environment" lead={lead.filter(Boolean).join(' ')}>
      {kinds.length === 0 && (
        <p className="quiet">No templates yet. Your platform team installs them.</p>
      )}
      <ul className="cards kinds">
        {kinds.map((kind) => (
          <li
            key={kindPath(kind)}
            className="card kind"
            data-off={kind.mayCreate === false || undefined}
          >
            <Picture api={known(kind).api} size={64} />
            <h2>
              <Link href={`/new?kind=${kindPath(kind)}`} className="whole">
                {known(kind).title}
              </Link>
            </h2>
            <p>{kind.description}</p>
            {kind.mayCreate === false && (
              <p className="small">
                You cannot create this in your default namespace. Choose another one or ask your
                platform team.
              </p>
            )}
            {isTwice(kind) && (
              <p className="small">
                {kind.claim ? 'Claims API' : 'Namespaced API'}: {kind.apiVersion}
              </p>
            )}
          </li>
        ))}
      </ul>
    </Page>
  );
}
