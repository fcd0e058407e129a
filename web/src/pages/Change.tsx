import { Alert, Button, Skeleton } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useMemo, useState } from 'react';
import { answer, api } from '../api/client';
import { isOverBudget, mayBeDone, Refused } from '../api/problem';
import type { Document, Environment, Whole } from '../api/schema';
import { changed, differences, meanwhile, type Difference, type Meanwhile } from '../kinds/changes';
import { kindPath } from '../kinds/metadata';
import { placeOf } from '../kinds/paths';
import {
  asked,
  fieldTitle,
  networksOf,
  stillOffering,
  withOptions,
  type Data,
  type Schema,
} from '../kinds/schema';
import { faultsAhead } from '../kinds/validate';
import { holdsPrivateKey } from '../kinds/secrets';
import { AllowAddress } from '../components/AllowAddress';
import { KindsAlert } from '../components/KindsAlert';
import { ChangePreview, usePreview } from '../components/Preview';
import { ProblemAlert, rejection } from '../components/ProblemAlert';
import { SchemaForm, type Notes } from '../components/SchemaForm';
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

/** The form that changes an environment. It is the same form as for its creation. */
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
 * A draft: the user's changes and the spec before them. Another user may change that spec while the
 * form is closed.
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
  const path = kindPath(environment);
  const { data: known } = useRequest(path, (signal) =>
    answer(api.GET('/api/v1/kinds/{kind}', { params: { path: { kind: path } }, signal })),
  );
  const offering = useMemo(
    () => stillOffering(withOptions(schema, known?.options ?? []), before),
    [schema, known, before],
  );
  const form = useSpec(schema, begun, offering);
  const mine = useMemo(() => differences(before, form.spec), [before, form.spec]);
  /**
   * The spec at the start of the user's changes. `others` has the changes by other users since
   * then.
   */
  const [since, setSince] = useState(saved?.before);
  const others = useMemo(() => since && meanwhile(since, before, mine), [since, before, mine]);
  // A private key that was pasted by mistake is not stored. All other input is.
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
  // The document that the preview rejects: the cluster would accept it, and the function would
  // reject it.
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
      const fresh = await send(environment, base, schema, form.spec, anyway);
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
  /** Another user saved first. The form takes in their changes and keeps this user's changes. */
  const catchUp = (fresh: Whole) => {
    const now = own(schema, fresh);
    setBase(fresh);
    form.change(changed(now, mine));
    setSince(before);
    goToFirstError();
  };
  const isClosed = ready ? preview.data?.sshClosed : mine.length === 0 && environment.sshClosed;
  const notes: Notes = {
    [networksOf(schema)?.join('.') ?? '']: isClosed && (
      <AllowAddress schema={schema} data={form.data} onChange={fillIn} />
    ),
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
        {doubt && <ProblemAlert title={rejection(doubt, 'save it anyway')} error={doubt} marked />}
        {/* Text fields keep their own text, so they are created again after a merge. */}
        <SchemaForm
          key={`${base.resourceVersion} ${filled}`}
          schema={offering}
          data={form.data}
          faults={[...form.faults, ...faultsAhead(preview.error, form.faults)]}
          current={before}
          onChange={form.change}
          onLeave={form.leave}
          notes={notes}
        />
        <div className="buttons end sticky">
          <span className="small grow">
            {mine.length === 0
              ? 'No changes'
              : `Changed: ${mine.map(({ path }) => fieldTitle(schema, path)).join(', ')}`}
          </span>
          <Button variant="default" onClick={leave}>
            Cancel
          </Button>
          {doubt && !isOverBudget(doubt) && (
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

/** The number of retries after a conflict in which only the object's status or metadata changed. */
const ANEW = 5;

/**
 * Sends a change. Returns the current object if another user changed its spec first. Controllers
 * write the status all the time, so such a conflict is retried without asking the user.
 */
async function send(
  environment: Environment,
  read: Whole,
  schema: Schema,
  spec: Data,
  skipCheck: boolean,
  anew = ANEW,
): Promise<Whole | undefined> {
  try {
    await answer(
      api.PUT('/api/v1/environments/{namespace}/{kind}/{name}', {
        params: { path: placeOf(environment), query: skipCheck ? { skipCheck } : {} },
        body: document(read, schema, spec),
      }),
    );
    return undefined;
  } catch (refused) {
    if (!(refused instanceof Refused && refused.status === 409)) throw refused;
    const fresh = await get(environment);
    if (differences(own(schema, read), own(schema, fresh)).length > 0) return fresh;
    if (anew === 0) throw refused;
    return send(environment, fresh, schema, spec, skipCheck, anew - 1);
  }
}

/** The fields of an object's spec that the schema defines. Crossplane owns the others. */
function own(schema: Schema, { object }: Whole): Data {
  const spec = (object['spec'] ?? {}) as Data;
  return Object.fromEntries(Object.entries(spec).filter(([name]) => schema.properties?.[name]));
}

/** The whole object with another spec, in the form that a PUT requires. */
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
