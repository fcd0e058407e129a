import { Button, Modal, TextInput } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useState } from 'react';
import { answer, api } from '../api/client';
import { mayBeDone, Refused, words } from '../api/problem';
import type { Environment } from '../api/schema';
import { placeOf } from '../kinds/paths';
import { tellAtom } from '../state/notices';
import { usePortal } from '../state/portal';
import { meAtom } from '../state/session';
import { Ago } from './Ago';
import { DeletionPlan } from './DeletionPlan';
import { focusTitle } from './Page';

interface Props {
  environment: Environment;
  opened: boolean;
  close: () => void;
}

/**
 * Shows which resources are deleted and kept, and requires the environment's name. After Cancel,
 * the focus returns to the button.
 */
export function DeleteDialog({ environment, opened, close }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={close}
      title={`Delete ${environment.name}?`}
      closeButtonProps={{ 'aria-label': 'Close' }}
      centered
    >
      <Confirm environment={environment} close={close} />
    </Modal>
  );
}

/**
 * The environment is shown as being deleted immediately. A rejection reverts this and shows the
 * server's message.
 */
function Confirm({ environment, close }: Omit<Props, 'opened'>) {
  const { name, uid, owner, createdAt } = environment;
  const me = useAtomValue(meAtom);
  const [typed, setTyped] = useState('');
  const portal = usePortal();
  const tell = useSetAtom(tellAtom);
  const remove = () => {
    close();
    // The button that had the focus is now disabled.
    focusTitle();
    const leaving = portal.environments.leave(environment);
    answer(
      api.DELETE('/api/v1/environments/{namespace}/{kind}/{name}', {
        params: { path: placeOf(environment), query: { uid } },
      }),
    ).then(leaving.accepted, (error: unknown) => {
      if (error instanceof Refused && error.status === 404) {
        leaving.accepted();
        tell({ tone: 'good', title: `${name} was already deleted` });
        return;
      }
      leaving.refused();
      const title = mayBeDone(error)
        ? `We could not confirm that ${name} is being deleted`
        : `Could not delete ${name}`;
      tell({ tone: 'bad', title, detail: words(error) });
    });
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed === name) remove();
      }}
    >
      {owner && owner !== me?.login && (
        <p>
          Owner: {owner}. Created <Ago at={createdAt} />.
        </p>
      )}
      <DeletionPlan plan={environment.onDeletion} />
      <p>This cannot be undone.</p>
      <TextInput
        label={`Type ${name} to confirm`}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        data-autofocus
        autoComplete="off"
        spellCheck={false}
      />
      <div className="buttons end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button type="submit" color="red" disabled={typed !== name}>
          Delete environment
        </Button>
      </div>
    </form>
  );
}
