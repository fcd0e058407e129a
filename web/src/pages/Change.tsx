import { Alert, Button, Skeleton } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useMemo, useState } from 'react';
import { answer, api } from '../api/client';
import { Refused, mayBeDone } from '../api/problem';
import type { Document, Environment, Whole } from '../api/schema';
import { changed, differences, meanwhile, type Difference, type Meanwhile } from '../kinds/changes';
import { kindPath } from '../kinds/metadata';
import { placeOf } from '../kinds/paths';
import { asked, fieldTitle, type Data, type Schema } from '../kinds/schema';
import { holdsPrivateKey } from '../kinds/secrets';
import { AllowAddress } from '../components/AllowAddress';
import { KindsAlert } from '../components/KindsAlert';
import { ChangePreview, usePreview } from '../components/Preview';
import { ProblemAlert } from '../components/ProblemAlert';
import { SchemaForm } from '../components/SchemaForm';
import { goToFirstError, useSpec } from '../components/useSpec';
import { useRequest } from '../state/useRequest';
import { discardDraft, useSaveDraft, useDraft } from '../state/drafts';
import { tellAtom } from '../state/notices';
import { kindsAtom, kindsErrorAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';

interface Props {
  environment: Environment;
  done: () => void;
}

const get = (environment: Environment) =>
  answer(
    api.GET('/api/v1/environments/{namespace}/{kind}/{name}', {
      params: { path: placeOf(environment) },
    }),
  );

/** A change of what there is, in the same form that it was asked for in. */
export default function Change({ environment, done }: Props) {
  const kinds = useAtomValue(kindsAtom);
  const unread = useAtomValue(kindsErrorAtom);
  const { data, error, again } = useRequest(environment.uid, () => get(environment));
  const { title } = useKindMetadata(environment);
  const kind = kinds?.find((one) => kindPath(one) === kindPath(environment));
  const schema = useMemo(() => (kind?.schema ? asked(kind) : undefined), [kind]);
  if (error !== undefined)
    return <ProblemAlert title="Could not load the environment" error={error} again={again} />;
  if (!kinds && unread !== undefined) return <KindsAlert error={unread} />;
  if (kinds && !schema) return <p className="quiet">Could not load the form of a {title}.</p>;
  if (!data || !schema) return <Skeleton height={320} />;
  return (
    <Form
      key={`${environment.uid} ${data.resourceVersion}`}
      environment={environment}
      first={data}
      schema={schema}
      done={done}
    />
  );
}

/**
 * What was changed here, and of what: somebody else may change it before whoever has left the form
 * is back.
 */
interface Draft {
  before: Data;
  mine: Difference[];
}

function Form({ environment, first, schema, done }: Props & { first: Whole; schema: Schema }) {
  const [base, setBase] = useState(first);
  const [error, setError] = useState<unknown>();
  const [saving, setSaving] = useState(false);
  const tell = useSetAtom(tellAtom);
  const before = useMemo(() => own(schema, base), [schema, base]);
  const saved = useDraft(environment.uid) as Draft | undefined;
  const [begun] = useState(() => changed(before, saved?.mine ?? []));
  const form = useSpec(schema, begun);
  const mine = useMemo(() => differences(before, form.spec), [before, form.spec]);
  /** What one's own changes began with; `others` is what has changed since. */
  const [since, setSince] = useState(saved?.before);
  const others = useMemo(() => since && meanwhile(since, before, mine), [since, before, mine]);
  // A private key that was pasted by mistake is not kept; everything else is.
  const safe = useMemo(() => mine.filter(({ value }) => !holdsPrivateKey(value)), [mine]);
  useSaveDraft(
    environment.uid,
    useMemo<Draft | undefined>(
      () => (safe.length > 0 ? { before: since ?? before, mine: safe } : undefined),
      [since, before, safe],
    ),
  );
  const wanted = useMemo(() => document(base, schema, form.spec), [base, schema, form.spec]);
  const ready = form.valid && mine.length > 0;
  const { preview, refused } = usePreview(ready ? wanted : undefined, (body: Document, signal) =>
    previewed(environment, body, signal),
  );
  // The document that the preview rejects: the cluster would take it, and then reject it.
  const [doubted, setDoubted] = useState<{ of: Document; error: Refused }>();
  const doubt = doubted?.of === wanted ? doubted.error : undefined;
  const [filled, setFilled] = useState(0);
  const fillIn = (data: Data) => {
    form.change(data);
    setFilled((one) => one + 1);
  };
  const leave = () => {
    discardDraft(environment.uid);
    done();
  };
  const save = async (anyway = false) => {
    if (!form.check()) {
      goToFirstError();
      return;
    }
    setSaving(true);
    setError(undefined);
    const rejected = anyway ? undefined : await refused(wanted);
    if (rejected) {
      setDoubted({ of: wanted, error: rejected });
      form.refuse(rejected);
      goToFirstError();
      setSaving(false);
      return;
    }
    setSince(undefined);
    try {
      const fresh = await send(environment, base, schema, form.spec);
      if (fresh) catchUp(fresh);
      else {
        tell({ tone: 'good', title: `${environment.name} is being changed` });
        leave();
      }
    } catch (refused) {
      setError(refused);
      form.refuse(refused);
      goToFirstError();
    } finally {
      setSaving(false);
    }
  };
  /** Somebody was faster: what they have changed is taken in, and what was changed here stays. */
  const catchUp = (fresh: Whole) => {
    const now = own(schema, fresh);
    setBase(fresh);
    form.change(changed(now, mine));
    setSince(before);
    goToFirstError();
  };
  return (
    <div className="two create">
      <form
        className="panel form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        {others && mine.length > 0 && <MeanwhileAlert schema={schema} {...others} />}
        {error !== undefined && (
          <ProblemAlert
            title={
              mayBeDone(error)
                ? 'We could not confirm that it was changed. Check it before you try again.'
                : 'Could not save the changes'
            }
            error={error}
          />
        )}
        {doubt && (
          <ProblemAlert
            title="This would be rejected. Fix the marked fields, or save it anyway."
            error={doubt}
          />
        )}
        {/* Fields that hold a text of their own begin anew with what was taken in. */}
        <SchemaForm
          key={`${base.resourceVersion} ${filled}`}
          schema={schema}
          data={form.data}
          faults={form.faults}
          current={before}
          onChange={form.change}
          onLeave={form.leave}
        />
        {(ready ? preview.data?.sshClosed : mine.length === 0 && environment.sshClosed) && (
          <AllowAddress schema={schema} data={form.data} onChange={fillIn} />
        )}
        <div className="buttons end sticky">
          <span className="small grow">
            {mine.length === 0
              ? 'No changes'
              : `Changed: ${mine.map(({ path }) => fieldTitle(schema, path)).join(', ')}`}
          </span>
          <Button variant="default" onClick={leave}>
            Cancel
          </Button>
          {doubt && (
            <Button variant="default" disabled={saving} onClick={() => void save(true)}>
              Save anyway
            </Button>
          )}
          <Button type="submit" loading={saving} disabled={mine.length === 0}>
            Save changes
          </Button>
        </div>
      </form>
      <ChangePreview asked={preview} ready={ready} />
    </div>
  );
}

function MeanwhileAlert({ schema, theirs, both }: Meanwhile & { schema: Schema }) {
  const titles = (paths: readonly string[][]) =>
    paths.map((path) => fieldTitle(schema, path)).join(', ');
  return (
    <Alert color="yellow" title="Someone else changed this environment" role="alert">
      <p>
        Someone else changed {titles(theirs)}. We merged it into this form; your changes are kept.
        {both.length > 0 && ` Your ${titles(both)} would replace theirs.`} Check the form before you
        save.
      </p>
    </Alert>
  );
}

const previewed = (environment: Environment, body: Document, signal?: AbortSignal) =>
  answer(
    api.POST('/api/v1/environments/{namespace}/{kind}/{name}/preview', {
      params: { path: placeOf(environment) },
      body,
      signal,
    }),
  );

/**
 * How often a change is sent anew because the object was written meanwhile, although nobody has
 * changed its spec.
 */
const ANEW = 5;

/**
 * Sends a change of what was read; answers what there is now where somebody else was faster. Status
 * is written all the time: that is no reason to ask whoever saves it.
 */
async function send(
  environment: Environment,
  read: Whole,
  schema: Schema,
  spec: Data,
  anew = ANEW,
): Promise<Whole | undefined> {
  try {
    await answer(
      api.PUT('/api/v1/environments/{namespace}/{kind}/{name}', {
        params: { path: placeOf(environment) },
        body: document(read, schema, spec),
      }),
    );
    return undefined;
  } catch (refused) {
    if (!(refused instanceof Refused && refused.status === 409)) throw refused;
    const fresh = await get(environment);
    if (differences(own(schema, read), own(schema, fresh)).length > 0) return fresh;
    if (anew === 0) throw refused;
    return send(environment, fresh, schema, spec, anew - 1);
  }
}

/** Of an object's spec what the schema is about; the rest is Crossplane's. */
function own(schema: Schema, { object }: Whole): Data {
  const spec = (object['spec'] ?? {}) as Data;
  return Object.fromEntries(Object.entries(spec).filter(([name]) => schema.properties?.[name]));
}

/** The whole object with another spec, as a PUT takes it. */
function document({ object, resourceVersion }: Whole, schema: Schema, spec: Data): Document {
  const { apiVersion, kind, metadata } = object as {
    apiVersion: string;
    kind: string;
    metadata: Data;
  };
  const { name, namespace, labels, annotations } = metadata;
  const rest = Object.fromEntries(
    Object.entries((object['spec'] ?? {}) as Data).filter(([field]) => !schema.properties?.[field]),
  );
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations, resourceVersion },
    spec: { ...rest, ...spec },
  };
}
