import { Button, Skeleton, Textarea, TextInput } from '@mantine/core';
import { useSetAtom } from 'jotai';
import { useState } from 'react';
import { answer, api } from '../api/client';
import { Refused, mayBeDone, words } from '../api/problem';
import { holdsPrivateKey, PRIVATE_KEY } from '../kinds/secrets';
import { Icon } from '../components/Icon';
import { focusTitle, Page } from '../components/Page';
import { ProblemAlert } from '../components/ProblemAlert';
import { useRequest } from '../state/useRequest';
import { discardDraft, useSaveDraft, useDraft } from '../state/drafts';
import { tellAtom } from '../state/notices';

/** The user's SSH public keys. */
export default function KeysPage() {
  const { data, error, again } = useRequest('keys', () => answer(api.GET('/api/v1/keys')));
  return (
    <Page
      title="SSH keys"
      lead="These keys are added to new GPU workspaces. Existing workspaces are not changed."
    >
      {error !== undefined && (
        <ProblemAlert title="Could not load your keys" error={error} again={again} />
      )}
      {!data && error === undefined && <Skeleton height={120} />}
      {data && <Keys first={data.keys} />}
    </Page>
  );
}

const PATH = '/api/v1/keys';

function Keys({ first }: { first: string[] }) {
  const saved = useDraft('keys');
  const [stored, setStored] = useState(first);
  const [draft, setDraft] = useState(typeof saved === 'string' ? saved : '');
  // A private key that was pasted by mistake is neither stored nor sent.
  const secret = holdsPrivateKey(draft);
  useSaveDraft('keys', draft === '' || secret ? undefined : draft);
  const [refused, setRefused] = useState<string>();
  // The portal may know no namespace in which the user may create workspaces.
  const [asksPlace, setAsksPlace] = useState(false);
  const [namespace, setNamespace] = useState('');
  const [saving, setSaving] = useState(false);
  const tell = useSetAtom(tellAtom);
  /** Changes the current list, because another page may have changed it since this page read it. */
  const save = async (
    change: (keys: string[]) => string[],
    done: (before: number, after: number) => string,
  ) => {
    setSaving(true);
    setRefused(undefined);
    try {
      const now = await answer(api.GET(PATH));
      const { keys } = await answer(
        api.PUT(PATH, {
          params: { query: namespace ? { namespace } : {} },
          body: { keys: change(now.keys) },
        }),
      );
      setStored(keys);
      tell({ tone: 'good', title: done(now.keys.length, keys.length) });
    } catch (error) {
      const fields = error instanceof Refused ? error.fields : [];
      if (fields.some(({ field }) => field === 'namespace')) setAsksPlace(true);
      throw error;
    } finally {
      setSaving(false);
    }
  };
  const add = async () => {
    const lines = draft
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
    if (secret) return;
    if (lines.length === 0) {
      setRefused('Paste a key first.');
      return;
    }
    try {
      await save(
        (keys) => [...keys, ...lines],
        (before, after) =>
          after > before ? 'Your key was added' : 'This key is already in your list',
      );
      discardDraft('keys');
      setDraft('');
    } catch (error) {
      setRefused(
        error instanceof Refused && error.fields[0]?.field.startsWith('keys')
          ? error.fields[0].message
          : words(error),
      );
    }
  };
  const remove = (line: string) => {
    // The button that had the focus is removed with its key.
    save(
      (keys) => keys.filter((key) => key !== line),
      () => 'The key was removed',
    ).then(focusTitle, (error: unknown) =>
      tell({
        tone: 'bad',
        title: mayBeDone(error)
          ? 'We could not confirm that the key was removed. Check the list before you try again.'
          : 'Could not remove the key',
        detail: words(error),
      }),
    );
  };
  return (
    <>
      {stored.length === 0 && (
        <p className="quiet">
          You have no SSH keys yet. Without a key and an allowed network you can only connect
          through AWS Session Manager.
        </p>
      )}
      <ul className="keys" aria-label="Your keys">
        {stored.map((key) => (
          <KeyLine key={key} line={key} disabled={saving} remove={() => remove(key)} />
        ))}
      </ul>
      <form
        className="panel narrow"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <Textarea
          label="Add a key"
          description="Paste a public key, for example the line in ~/.ssh/id_ed25519.pub."
          placeholder="ssh-ed25519 AAAA… you@laptop"
          autosize={false}
          rows={3}
          value={draft}
          error={secret ? PRIVATE_KEY : refused}
          spellCheck={false}
          onChange={(event) => setDraft(event.currentTarget.value)}
        />
        {asksPlace && (
          <TextInput
            label="Namespace"
            description="A namespace in which you may create workspaces."
            value={namespace}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => setNamespace(event.currentTarget.value.trim())}
          />
        )}
        <Button type="submit" loading={saving} leftSection={<Icon name="plus" />}>
          Add
        </Button>
      </form>
    </>
  );
}

function KeyLine({
  line,
  disabled,
  remove,
}: {
  line: string;
  disabled: boolean;
  remove: () => void;
}) {
  const [type = '', body = '', ...comment] = line.split(/\s+/);
  const name = comment.join(' ') || 'unnamed key';
  return (
    <li className="key">
      <div className="key-words">
        <strong>{name}</strong>
        <code className="code cut" title={line}>
          {type} …{body.slice(-16)}
        </code>
      </div>
      <Button
        variant="default"
        size="compact-sm"
        disabled={disabled}
        onClick={remove}
        leftSection={<Icon name="trash" size={16} />}
        aria-label={`Remove ${name}`}
      >
        Remove
      </Button>
    </li>
  );
}
