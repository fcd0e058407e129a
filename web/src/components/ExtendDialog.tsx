import { Button, Modal, NativeSelect } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useState } from 'react';
import type { Environment } from '../api/schema';
import { extensionsOf, MAXIMUM, NEVER, type Choice } from '../kinds/lifecycle';
import { exactly } from '../kinds/format';
import { nowAtom } from '../state/now';
import { useRequests } from '../state/requests';
import { ProblemAlert } from './ProblemAlert';

interface Props {
  environment: Environment;
  opened: boolean;
  close: () => void;
}

/** Asks how long the environment is to live from now on. */
export function ExtendDialog({ environment, opened, close }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Extend ${environment.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
      centered
    >
      <Choose environment={environment} close={close} />
    </Modal>
  );
}

/** The sync of a tool such as Argo CD or Flux reverts a change that is not in Git. */
const FROM_GIT =
  'If the environment comes from Git, change spec.lifecycle.ttl there. Otherwise the next sync ' +
  'restores the old value.';

function newEnd({ seconds }: Choice, now: number): string {
  return seconds === undefined
    ? `The environment runs, and costs, until a user stops or deletes it. ${FROM_GIT}`
    : `New end: ${exactly(now + seconds * 1000)}`;
}

function Choose({ environment, close }: Omit<Props, 'opened'>) {
  const now = useAtomValue(nowAtom);
  const { extend, keep } = useRequests(environment);
  const extensions = extensionsOf(environment, now);
  const [chosen, setChosen] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [sending, setSending] = useState(false);
  const { lifecycle } = environment;
  const one = extensions.find(({ value }) => value === chosen) ?? extensions[0];
  const send = async () => {
    if (!one) return;
    setSending(true);
    setError(undefined);
    try {
      if (one.value === NEVER) await keep();
      else await extend(one.value === MAXIMUM ? { maximum: true } : { for: one.value });
      close();
    } catch (refused) {
      setError(refused);
      setSending(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {error !== undefined && (
        <ProblemAlert title={`Could not extend ${environment.name}`} error={error} />
      )}
      <p>
        Current end: {exactly(Date.parse(lifecycle?.expiresAt ?? ''))}.
        {lifecycle?.stopReason === 'Expired' && ' The environment starts again.'}
      </p>
      {one ? (
        <NativeSelect
          label="Time from now"
          description={newEnd(one, now)}
          data={extensions.map(({ value, label }) => ({ value, label }))}
          value={one.value}
          onChange={(event) => setChosen(event.currentTarget.value)}
          data-autofocus
        />
      ) : (
        <p>The end cannot be moved further away now.</p>
      )}
      <div className="buttons end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button type="submit" loading={sending} disabled={!one}>
          Extend
        </Button>
      </div>
    </form>
  );
}
