import { Alert, Button, Skeleton } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useMemo, useState } from 'react';
import { answer, api } from '../api/client';
import { Refused } from '../api/problem';
import type { Environment, Whole } from '../api/schema';
import { changed, differences } from '../kinds/changes';
import { known, kindPath } from '../kinds/known';
import { placeOf } from '../kinds/paths';
import { asked, type Data, type Schema } from '../kinds/schema';
import { ProblemAlert } from '../parts/ProblemAlert';
import { SchemaForm } from '../parts/SchemaForm';
import { goToFirstError, useSpec } from '../parts/useSpec';
import { useAsked } from '../state/asked';
import { useKeeping, useKept } from '../state/kept';
import { tellAtom } from '../state/notices';
import { kindsAtom } from '../state/session';

interface Props {
  environment: Environment;
  done: () => void;
}

const get = (environment: Environment) => answer(api.GET('/api/v1/environments/{namespace}/{kind}/{name}', { params: { path: placeOf(environment) } }));

/** A change of what there is, in the same form that it was asked for in. */
export default function Change({ environment, done }: Props) {
  const kinds = useAtomValue(kindsAtom);
  const { data, error, again } = useAsked(environment.uid, () => get(environment));
  const kind = kinds?.find((one) => kindPath(one) === kindPath(environment));
  const schema = useMemo(() => (kind?.schema ? asked(kind) : undefined), [kind]);
  if (error !== undefined) return <ProblemAlert title="It cannot be read" error={error} again={again} />;
  if (kinds && !schema) return <p className="quiet">The cluster does not say what of a {known(environment.kind).title} can be changed.</p>;
  if (!data || !schema) return <Skeleton height={320} />;
  return <Form key={data.resourceVersion} environment={environment} first={data} schema={schema} done={done} />;
}

function Form({ environment, first, schema, done }: Props & { first: Whole; schema: Schema }) {
  const [base, setBase] = useState(first);
  const [error, setError] = useState<unknown>();
  const [saving, setSaving] = useState(false);
  const [meanwhile, setMeanwhile] = useState<Meanwhile>();
  const tell = useSetAtom(tellAtom);
  const before = own(schema, base);
  const kept = useKept(environment.uid) as Data | undefined;
  const form = useSpec(schema, kept ?? before);
  useKeeping(environment.uid, form.data);
  const mine = differences(before, form.spec);
  const save = async () => {
    if (!form.check()) { goToFirstError(); return; }
    setSaving(true);
    setError(undefined);
    setMeanwhile(undefined);
    try {
      await answer(api.PUT('/api/v1/environments/{namespace}/{kind}/{name}', { params: { path: placeOf(environment) }, body: document(base, schema, form.spec) }));
      tell({ mood: 'good', title: `${environment.name} is being changed` });
      done();
    } catch (refused) {
      if (refused instanceof Refused && refused.status === 409) await catchUp();
      else {
        setError(refused);
        form.refuse(refused);
        goToFirstError();
      }
    } finally {
      setSaving(false);
    }
  };
  /** Somebody was faster: what they have changed is taken in, and what was changed here stays. */
  const catchUp = async () => {
    try {
      const fresh = await get(environment);
      const theirs = differences(before, own(schema, fresh)).map(({ path }) => path.join('.'));
      const both = mine.map(({ path }) => path.join('.')).filter((path) => theirs.includes(path));
      setBase(fresh);
      form.change(changed(own(schema, fresh), mine));
      setMeanwhile({ theirs, both });
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <form
      className="panel form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {meanwhile && <MeanwhileAlert {...meanwhile} />}
      {error !== undefined && <ProblemAlert title="The change was refused" error={error} />}
      <SchemaForm schema={schema} data={form.data} faults={form.faults} current={before} onChange={form.change} onLeave={form.leave} />
      <div className="buttons end sticky">
        <span className="small grow">{mine.length === 0 ? 'Nothing is changed yet.' : `Changed: ${mine.map(({ path }) => path.at(-1)).join(', ')}`}</span>
        <Button variant="default" onClick={done}>
          Cancel
        </Button>
        <Button type="submit" loading={saving} disabled={mine.length === 0}>
          Save the change
        </Button>
      </div>
    </form>
  );
}

interface Meanwhile {
  theirs: string[];
  both: string[];
}

function MeanwhileAlert({ theirs, both }: Meanwhile) {
  return (
    <Alert color="yellow" title="It was changed meanwhile" role="alert">
      <p>
        {theirs.length > 0 ? `Somebody has changed ${theirs.join(', ')}. That is taken into this form, and your changes are kept.` : 'Nothing that this form shows was changed; your changes are kept.'}
        {both.length > 0 && ` Of ${both.join(', ')} yours would replace theirs.`} Look it over, and save again.
      </p>
    </Alert>
  );
}

/** Of an object's spec what the schema is about; the rest is Crossplane's. */
function own(schema: Schema, { object }: Whole): Data {
  const spec = (object['spec'] ?? {}) as Data;
  return Object.fromEntries(Object.entries(spec).filter(([name]) => schema.properties?.[name]));
}

/** The whole object with another spec, as a PUT takes it. */
function document({ object, resourceVersion }: Whole, schema: Schema, spec: Data) {
  const { apiVersion, kind, metadata } = object as { apiVersion: string; kind: string; metadata: Data };
  const { name, namespace, labels, annotations } = metadata;
  const rest = Object.fromEntries(Object.entries((object['spec'] ?? {}) as Data).filter(([field]) => !schema.properties?.[field]));
  return { apiVersion, kind, metadata: { name, namespace, labels, annotations, resourceVersion }, spec: { ...rest, ...spec } };
}
