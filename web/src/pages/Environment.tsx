import { Button, Skeleton, Tabs } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useEffect, useMemo, useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { answer, api } from '../api/client';
import { Refused } from '../api/problem';
import type { Environment, OnDeletion } from '../api/schema';
import { kindPath, Picture } from '../kinds/metadata';
import { hasBanner } from '../kinds/lifecycle';
import { toneOf } from '../kinds/tone';
import { compare } from '../kinds/format';
import { Ago } from '../components/Ago';
import { Connection } from '../components/Connection';
import { DeleteDialog } from '../components/DeleteDialog';
import { KeptResources } from '../components/DeletionPlan';
import { End, HourlyPrice } from '../components/End';
import { History } from '../components/History';
import { Icon } from '../components/Icon';
import { KindName } from '../components/KindName';
import { LifecycleBanner } from '../components/LifecycleBanner';
import { LifecycleButtons } from '../components/LifecycleButtons';
import { LifecycleFacts } from '../components/LifecycleFacts';
import { NotifyMe } from '../components/NotifyMe';
import { Loaded, onDemand } from '../components/onDemand';
import { focusTitle, Page } from '../components/Page';
import { Pill } from '../components/Pill';
import { ProblemAlert } from '../components/ProblemAlert';
import { Progress } from '../components/Progress';
import { Tree } from '../components/Tree';
import { useRequest } from '../state/useRequest';
import { environmentAtom, rowsAtom, syncedAtom } from '../state/environments';
import { useElapsed } from '../state/useElapsed';
import { usePortal } from '../state/portal';
import { useFault } from '../state/useFault';
import { useKindMetadata } from '../state/useKindMetadata';

const Yaml = onDemand(() => import('./Yaml'));
const Change = onDemand(() => import('./Change'));

interface Place {
  namespace: string;
  kind: string;
  name: string;
}

/**
 * One environment, from the stream. If the stream does not have it, it is read from the API server.
 */
export default function EnvironmentPage({ params }: { params: Place }) {
  const place = `${params.namespace}/${params.kind}/${params.name}`;
  return <Found key={place} {...params} />;
}

/**
 * The interval between reads of an environment that the stream does not report, in milliseconds.
 */
const AGAIN = 5_000;

function Found({ namespace, kind, name }: Place) {
  const rows = useAtomValue(rowsAtom);
  const synced = useAtomValue(syncedAtom);
  const portal = usePortal();
  const row = rows.find(
    (one) =>
      one.namespace === namespace &&
      one.name === name &&
      (kindPath(one) === kind || one.plural === kind),
  );
  const line = useAtomValue(environmentAtom(row?.key ?? ''));
  // The stream may not have reported it yet, the user may not list it, or it is deleted.
  const untold = synced && !row?.told;
  const { error, failed, pending, again } = useRequest(
    untold ? `${namespace}/${kind}/${name}` : undefined,
    async () => {
      try {
        const whole = await answer(
          api.GET('/api/v1/environments/{namespace}/{kind}/{name}', {
            params: { path: { namespace, kind, name } },
          }),
        );
        const { object: _, ...environment } = whole;
        portal.environments.offer(environment);
      } catch (refused) {
        if (isMissing(refused) && row) portal.environments.retract(row.key);
        throw refused;
      }
    },
  );
  const key = row?.key;
  useEffect(() => {
    if (key === undefined) return;
    // Without this page, the copy that was only read would become outdated.
    return () => portal.environments.retract(key);
  }, [portal, key]);
  const [seen, setSeen] = useState(false);
  if (row && !seen) setSeen(true);
  // The message after the deletion lists kept resources. The plan is stored now, because it cannot
  // be read after the deletion.
  const [plan, setPlan] = useState(line?.onDeletion);
  if (line?.onDeletion && line.onDeletion !== plan) setPlan(line.onDeletion);
  const environment = untold && isRefused(error) ? undefined : line;
  const read = untold && environment !== undefined;
  const reads = untold && seen && !isRefused(error);
  // A periodic read must not make the error message flicker.
  const trouble = reads ? failed : error;
  useEffect(() => {
    // The delay starts after the response, because a response may be slow.
    if (!reads || pending) return;
    const timer = setTimeout(again, AGAIN);
    return () => clearTimeout(timer);
  }, [reads, pending, again]);
  // A new snapshot of the stream removes environments that were only read.
  const forgotten = untold && !pending && seen && row === undefined && error === undefined;
  useEffect(() => {
    if (forgotten) again();
  }, [forgotten, again]);
  if (seen && untold && isMissing(error)) return <Gone name={name} plan={plan} />;
  if (!seen && untold && isMissing(error)) return <Unknown name={name} namespace={namespace} />;
  return (
    <Page
      title={name}
      above={<Back />}
      beside={environment && <Actions environment={environment} />}
      lead={environment && <Facts environment={environment} />}
    >
      {environment ? (
        <>
          <LifecycleBanner environment={environment} />
          <Says environment={environment} />
          <Sections environment={environment} />
          {read && <Untold />}
        </>
      ) : trouble === undefined ? (
        <Skeleton height={320} />
      ) : (
        <ProblemAlert title="Could not load this environment" error={trouble} again={again} />
      )}
    </Page>
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof Refused && error.status === 404;
}

/** Whether the portal denied the request. Without a response, the known state stays. */
function isRefused(error: unknown): boolean {
  return error instanceof Refused && [403, 404].includes(error.status);
}

/**
 * States that this page is refreshed periodically. For a new environment, the stream usually takes
 * over before this message appears.
 */
function Untold() {
  const later = useElapsed(3_000);
  return (
    <div role="status">
      {later && (
        <p className="note">
          No live updates for this environment: the page refreshes every few seconds. You may not
          have permission to list environments.
        </p>
      )}
    </div>
  );
}

function Back() {
  return (
    <Link href="/" className="back">
      <Icon name="back" size={16} /> Environments
    </Link>
  );
}

function Gone({ name, plan }: { name: string; plan: OnDeletion | null | undefined }) {
  return (
    <Page title={`${name} was deleted`} above={<Back />}>
      {!plan && <p>Its resources were deleted. Its template lists the kept resources.</p>}
      {plan && plan.keeps.length === 0 && <p>All of its resources were deleted.</p>}
      {plan && plan.keeps.length > 0 && <KeptResources plan={plan} />}
      <ToList />
    </Page>
  );
}

/** A link to an environment that does not exist, or that the user may not see. */
function Unknown({ name, namespace }: { name: string; namespace: string }) {
  return (
    <Page title={`${name} does not exist`} above={<Back />}>
      <p>
        Namespace {namespace} has no environment of this kind and name. It was deleted, or the link
        is wrong.
      </p>
      <ToList />
    </Page>
  );
}

function ToList() {
  return (
    <div className="buttons">
      <Button component={Link} href="/">
        Go to my environments
      </Button>
    </div>
  );
}

/** The banner of an environment has its buttons. Otherwise they stand beside the title. */
function Actions({ environment }: { environment: Environment }) {
  return (
    <div className="buttons">
      {!hasBanner(environment) && <LifecycleButtons environment={environment} />}
      <Remove environment={environment} />
    </div>
  );
}

function Remove({ environment }: { environment: Environment }) {
  const { deletedAt } = environment;
  const [deleting, setDeleting] = useState(false);
  return (
    <>
      <Button
        variant="default"
        leftSection={<Icon name="trash" size={16} />}
        disabled={Boolean(deletedAt)}
        onClick={() => setDeleting(true)}
      >
        {deletedAt ? 'Being deleted' : 'Delete'}
      </Button>
      <DeleteDialog environment={environment} opened={deleting} close={() => setDeleting(false)} />
    </>
  );
}

function Facts({ environment }: { environment: Environment }) {
  const { namespace, phase, owner, createdAt } = environment;
  return (
    <span className="facts-line">
      <Pill tone={toneOf(environment)} word={phase} />
      <span>
        <KindName of={environment} />
      </span>
      <span>{namespace}</span>
      {owner && <span>{owner}</span>}
      <Ago at={createdAt} />
      {/* The end is known later: in its line, it moves no other line. */}
      <span className="line-break" />
      <End of={environment} />
      <HourlyPrice of={environment} />
    </span>
  );
}

/** The progress and the reason why the environment is not ready: cause, remediation and message. */
function Says({ environment }: { environment: Environment }) {
  const { progress, message } = environment;
  const tone = toneOf(environment);
  const { api } = useKindMetadata(environment);
  const fault = useFault(environment);
  // The message of a resource is shown at the resource. Only this place shows the message of the
  // whole.
  const isWhole = fault !== undefined && !fault.slot;
  const needsHelp = fault !== undefined && (isWhole || tone === 'bad');
  return (
    <div className="state" data-tone={tone} role="status">
      <Picture api={api} size={56} />
      <div className="grow">
        <Progress text={progress} tone={tone} />
        {fault && <p className="state-cause">{fault.cause.headline}</p>}
        {needsHelp && <p className="state-helps">{fault.cause.remediation}</p>}
        {(!fault || isWhole) && (
          <p className="state-says" data-whole={isWhole || undefined} title={message}>
            {message || (!fault && 'No status yet.')}
          </p>
        )}
        {tone === 'busy' && <NotifyMe />}
      </div>
    </div>
  );
}

const TABS = ['overview', 'change', 'yaml'];

function Sections({ environment }: { environment: Environment }) {
  const [search, setSearch] = useSearchParams();
  const gone = Boolean(environment.deletedAt);
  const asked = search.get('tab') ?? '';
  // An environment that is being deleted cannot be changed. Its remaining resources are shown.
  const tab = TABS.includes(asked) && !(gone && asked === 'change') ? asked : 'overview';
  const choose = (next: string | null) =>
    setSearch(next && next !== 'overview' ? { tab: next } : {}, { replace: true });
  const done = () => {
    choose('overview');
    // The button that had the focus is removed with its view.
    focusTitle();
  };
  return (
    <Tabs value={tab} onChange={choose} keepMounted={false}>
      <Tabs.List aria-label="Views">
        <Tabs.Tab value="overview">Overview</Tabs.Tab>
        <Tabs.Tab value="change" disabled={gone}>
          Change
        </Tabs.Tab>
        <Tabs.Tab value="yaml">YAML</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="overview" pt="md">
        <Overview environment={environment} />
      </Tabs.Panel>
      <Tabs.Panel value="change" pt="md">
        <Loaded>
          <Change environment={environment} done={done} />
        </Loaded>
      </Tabs.Panel>
      <Tabs.Panel value="yaml" pt="md">
        <Loaded>
          <Yaml environment={environment} />
        </Loaded>
      </Tabs.Panel>
    </Tabs>
  );
}

function Overview({ environment }: { environment: Environment }) {
  const { parts, deletedAt, failed } = environment;
  const sorted = useMemo(() => [...parts].sort((a, b) => compare(a.slot, b.slot)), [parts]);
  const connect = (
    <section className="panel connect" aria-labelledby="connection">
      <h2 id="connection">Connect</h2>
      <Connection environment={environment} />
    </section>
  );
  // The way in is first, or the reason why there is none.
  const first = !failed && !deletedAt;
  return (
    <div className="two overview">
      <div className="aside">
        {first && connect}
        <section className="panel" aria-labelledby="parts">
          <h2 id="parts">{deletedAt ? 'Still being deleted' : 'Resources'}</h2>
          {sorted.length === 0 ? (
            <p className="quiet">{deletedAt ? 'No resources are left.' : 'No resources yet.'}</p>
          ) : (
            <Tree parts={sorted} leaving={Boolean(deletedAt)} />
          )}
        </section>
      </div>
      <div className="aside">
        {!first && connect}
        <section className="panel" aria-labelledby="lifecycle">
          <h2 id="lifecycle">Lifecycle and price</h2>
          <LifecycleFacts environment={environment} />
        </section>
        <section className="panel" aria-labelledby="history">
          <h2 id="history">Timeline</h2>
          <History environment={environment} />
        </section>
      </div>
    </div>
  );
}
