import { Button, Modal, TextInput } from '@mantine/core';
import { useSetAtom } from 'jotai';
import { useState } from 'react';
import { answer, api } from '../api/client';
import { words } from '../api/problem';
import type { Environment } from '../api/schema';
import { placeOf } from '../kinds/paths';
import { isHelper } from '../kinds/tree';
import { count } from '../kinds/words';
import { tellAtom } from '../state/notices';
import { usePortal } from '../state/portal';

/** Asks for the name before anything is deleted. It shows as going at once; a refusal takes that back, in the server's words. */
export function DeleteDialog({ environment, close }: { environment: Environment; close: () => void }) {
  const { name, namespace, uid, parts } = environment;
  const [typed, setTyped] = useState('');
  const portal = usePortal();
  const tell = useSetAtom(tellAtom);
  const remove = () => {
    close();
    const leaving = portal.environments.leave(environment);
    answer(api.DELETE('/api/v1/environments/{namespace}/{kind}/{name}', { params: { path: placeOf(environment), query: { uid } } })).then(leaving.accepted, (error: unknown) => {
      leaving.refused();
      tell({ mood: 'bad', title: `${name} was not deleted`, detail: words(error) });
    });
  };
  return (
    <Modal opened onClose={close} title={`Delete ${name}?`} closeButtonProps={{ 'aria-label': 'Close' }} centered>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === name) remove();
        }}
      >
        <p>
          Everything it is made of goes with it: {count(parts.filter((part) => !isHelper(part)).length, 'part')} in {namespace}. This cannot be undone.
        </p>
        <TextInput label={`Type its name, ${name}, to confirm`} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} data-autofocus autoComplete="off" spellCheck={false} />
        <div className="buttons end">
          <Button variant="default" onClick={close}>
            Keep it
          </Button>
          <Button type="submit" color="red" disabled={typed !== name}>
            Delete it
          </Button>
        </div>
      </form>
    </Modal>
  );
}
