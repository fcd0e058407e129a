import { Button, TextInput } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { answer, api } from '../api/client';
import { isOverBudget, mayBeDone, Refused } from '../api/problem';
import type { Document, Kind, Whole } from '../api/schema';
import { changed, differences, type Difference } from '../kinds/changes';
import { kindPath } from '../kinds/metadata';
import { pageOf } from '../kinds/paths';
import { asked, beginning, keysOf, networksOf, withOptions, type Data } from '../kinds/schema';
import { faultsAhead } from '../kinds/validate';
import { holdsPrivateKey, PRIVATE_KEY } from '../kinds/secrets';
import { ChoiceInput } from '../components/ChoiceInput';
import { AllowAddress } from '../components/AllowAddress';
import { NoKey } from '../components/NoKey';
import { Hourly, Preview, usePreview, withLife } from '../components/Preview';
import { ProblemAlert, rejection } from '../components/ProblemAlert';
import { SchemaForm, type Notes } from '../components/SchemaForm';
import { ForGit } from '../components/ForGit';
import { goToFirstError, useSpec } from '../components/useSpec';
import { rowsAtom } from '../state/environments';
import { discardDraft, useSaveDraft, useDraft } from '../state/drafts';
import { usePortal } from '../state/portal';
import { meAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { useRequest } from '../state/useRequest';

/** The user's input. Other fields start with their initial values. */
interface Draft {
  name?: string;
  namespace?: string;
  mine: Difference[];
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The form for a new environment, next to its preview. */
export default function CreateForm({ kind, keys }: { kind: Kind; keys: readonly string[] }) {
  const me = useAtomValue(meAtom);
  const rows = useAtomValue(rowsAtom);
  const portal = usePortal();
  const { title, suffix } = useKindMetadata(kind);
  const [, go] = useLocation();
  const path = kindPath(kind);
  const { data: known } = useRequest(path, (signal) =>
    answer(api.GET('/api/v1/kinds/{kind}', { params: { path: { kind: path } }, signal })),
  );
  const schema = useMemo(() => asked(kind), [kind]);
  // The options arrive later. The state of the form belongs to the schema without them.
  const shown = useMemo(() => withOptions(schema, known?.options ?? []), [schema, known]);
  const saved = useDraft(path) as Draft | undefined;
  // Until the user enters a name, the name is a free one. The list of environments may load after
  // this form opens.
  const [named, setName] = useState(saved?.name);
  // A submitted name stays, because the environment may have been created.
  const [sent, setSent] = useState<string>();
  const free = useMemo(
    () => suggestion(me?.login ?? '', suffix, new Set(rows.map((row) => row.name))),
    [me, suffix, rows],
  );
  const name = named ?? sent ?? free;
  const [placed, setNamespace] = useState(saved?.namespace);
  const usual = kind.namespace ?? me?.namespaces[0];
  const namespace = placed ?? usual ?? '';
  // Without a default namespace, the user must enter one.
  const isLed = me === undefined || usual !== undefined;
  const isPlaced = isLed || namespace !== '';
  const [blank] = useState(() => beginning(schema, { login: me?.login ?? '', keys }));
  const [first] = useState(() => changed(blank, saved?.mine ?? []));
  const form = useSpec(schema, first, shown);
  const mine = useMemo(() => differences(blank, form.data), [blank, form.data]);
  const isTyped = named !== undefined || placed !== undefined || mine.length > 0;
  // A private key that was pasted by mistake is not stored. All other input is.
  const safe = useMemo(() => mine.filter(({ value }) => !holdsPrivateKey(value)), [mine]);
  useSaveDraft(
    path,
    useMemo<Draft | undefined>(
      () => (isTyped ? { name: named, namespace: placed, mine: safe } : undefined),
      [isTyped, named, placed, safe],
    ),
  );
  const [error, setError] = useState<unknown>();
  const [making, setMaking] = useState(false);
  const [filled, setFilled] = useState(0);
  const fillIn = (data: Data) => {
    form.change(data);
    setFilled((before) => before + 1);
  };
  const [taken, setTaken] = useState<string>();
  const place = `${namespace}/${name}`;
  const nameFits = NAME.test(name);
  const said = (field: string) => form.others.find((one) => one.field === field)?.message;
  const nameSays = holdsPrivateKey(name)
    ? PRIVATE_KEY
    : !nameFits
      ? 'Use lowercase letters, digits and hyphens (up to 63 characters)'
      : place === taken
        ? 'This name is taken'
        : said('metadata.name');
  const isSecret = holdsPrivateKey(namespace);
  const namespaces = useMemo(() => me?.namespaces.map((value) => ({ value })) ?? [], [me]);

  const document = useMemo(
    () => documentOf(kind, name, namespace, form.spec),
    [kind, name, namespace, form.spec],
  );
  const ready = form.valid && nameFits && isPlaced && !isSecret;
  const { preview, refused } = usePreview(ready ? document : undefined, previewed);
  // The document that the preview rejects: the cluster would accept it, and the function would
  // reject it.
  const [doubted, setDoubted] = useState<{ of: Document; error: Refused }>();
  const doubt = doubted?.of === document ? doubted.error : undefined;

  const isClosed = Boolean(preview.data?.sshClosed) && ready;
  const notes: Notes = {
    [networksOf(schema)?.join('.') ?? '']: isClosed && (
      <AllowAddress schema={schema} data={form.data} onChange={fillIn} />
    ),
    [keysOf(schema)?.join('.') ?? '']: <NoKey schema={schema} data={form.data} />,
  };
  const make = async (anyway = false) => {
    if (!form.check() || !nameFits || !isPlaced || isSecret) {
      goToFirstError();
      return;
    }
    setMaking(true);
    setError(undefined);
    const rejected = anyway ? undefined : await refused(document);
    if (rejected) {
      setDoubted({ of: document, error: rejected });
      form.refuse(rejected);
      goToFirstError();
      setMaking(false);
      return;
    }
    setSent(name);
    try {
      const query = anyway ? { skipCheck: true } : {};
      const made = (await answer(
        api.POST('/api/v1/environments', { params: { query }, body: document }),
      )) as Whole;
      const { object: _, ...environment } = made;
      portal.environments.offer(environment);
      discardDraft(path);
      go(pageOf(environment));
    } catch (refused) {
      setError(refused);
      form.refuse(refused);
      if (isTaken(refused)) setTaken(place);
      goToFirstError();
      setMaking(false);
    }
  };
  return (
    <div className="two create">
      <form
        className="panel form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        {saved && <p className="note">Draft restored. Cancel discards it.</p>}
        {doubt && (
          <ProblemAlert title={rejection(doubt, 'create it anyway')} error={doubt} marked />
        )}
        {error !== undefined && (
          <ProblemAlert
            title={
              mayBeDone(error)
                ? 'We could not confirm that it was created. Check the list before you try again.'
                : 'Could not create it'
            }
            error={error}
          />
        )}
        <div className="fields names">
          <TextInput
            label="Name"
            required
            value={name}
            error={name === '' ? 'Required' : nameSays}
            onChange={(event) => setName(event.currentTarget.value)}
            spellCheck={false}
            autoComplete="off"
            maxLength={63}
          />
          <ChoiceInput
            label="Namespace"
            description="Your team’s namespace."
            options={namespaces}
            value={namespace}
            error={isSecret ? PRIVATE_KEY : isPlaced ? said('metadata.namespace') : 'Required'}
            required={!isLed}
            placeholder={isLed ? 'Chosen for you' : 'Your team’s'}
            onChange={setNamespace}
          />
        </div>
        {/* Text fields keep their own text, so they are recreated after a change from outside. */}
        <SchemaForm
          key={filled}
          schema={shown}
          data={form.data}
          faults={[...form.faults, ...faultsAhead(preview.error, form.faults)]}
          onChange={form.change}
          onLeave={form.leave}
          notes={notes}
        />
        <div className="buttons end sticky">
          {ready && preview.error === undefined && preview.data && (
            <span className="small grow">
              <Hourly of={preview.data} />
            </span>
          )}
          <Button component={Link} href="/" variant="default" onClick={() => discardDraft(path)}>
            Cancel
          </Button>
          {doubt && !isOverBudget(doubt) && (
            <Button variant="default" disabled={making} onClick={() => void make(true)}>
              Create anyway
            </Button>
          )}
          <Button type="submit" loading={making}>
            Create {title.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())}
          </Button>
        </div>
      </form>
      <div className="aside">
        <Preview asked={preview} ready={ready} />
        <ForGit document={document} />
      </div>
    </div>
  );
}

const previewed = (body: Document, signal?: AbortSignal) =>
  answer(api.POST('/api/v1/preview', { body, signal })).then(withLife);

/**
 * Whether the name exists already. A quota also responds with a conflict, when many environments
 * are created at once.
 */
function isTaken(error: unknown): boolean {
  return error instanceof Refused && error.problem.reason === 'AlreadyExists';
}

/** A name that is free: `ada-gpu`, `ada-gpu-2`. */
function suggestion(login: string, short: string, taken: ReadonlySet<string>): string {
  const own =
    login
      .split('@')[0]!
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 40) || 'my';
  const names = Array.from(
    { length: taken.size + 1 },
    (_, index) => `${own}-${short}${index === 0 ? '' : `-${index + 1}`}`,
  );
  return names.find((name) => !taken.has(name))!;
}

/**
 * The environment as YAML for `kubectl apply`. A claim names the Secret for its connection details.
 */
function documentOf(
  { apiVersion, kind, claim }: Kind,
  name: string,
  namespace: string,
  spec: Data,
): Document {
  const secret = claim ? { writeConnectionSecretToRef: { name: `${name}-conn` } } : {};
  return {
    apiVersion,
    kind,
    metadata: { name, ...(namespace && { namespace }) },
    spec: { ...spec, ...secret },
  };
}
