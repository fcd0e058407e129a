import { useAtomValue } from 'jotai';
import { useEffect, useState } from 'react';
import { holdsPrivateKey } from '../kinds/secrets';
import { meAtom } from './session';

/** The prefix of the keys of drafts in this tab's storage. */
const PREFIX = 'paved-kept ';

/** A draft with its owner: another user may sign in later. */
interface Draft {
  of: string;
  value: unknown;
}

/**
 * The draft from before the user left this page, for another page or to sign in again. It is read
 * once, when the form opens.
 */
export function useDraft(key: string): unknown {
  const me = useAtomValue(meAtom);
  const [before] = useState(() => read(key));
  return before && before.of === me?.owner ? before.value : undefined;
}

/**
 * Stores a draft, in this tab alone, until it is sent or discarded with `discardDraft`. `undefined`
 * means an unchanged form.
 */
export function useSaveDraft(key: string, value: unknown): void {
  const owner = useAtomValue(meAtom)?.owner;
  useEffect(() => {
    if (owner !== undefined) write(key, value === undefined ? undefined : { of: owner, value });
  }, [owner, key, value]);
}

/** Deletes a draft after it was sent or discarded. */
export function discardDraft(key: string): void {
  write(key, undefined);
}

/** Deletes the drafts of all other users, so that the next user of this browser cannot see them. */
export function discardOtherDrafts(owner?: string): void {
  try {
    const keys = Object.keys(sessionStorage)
      .filter((name) => name.startsWith(PREFIX))
      .map((name) => name.slice(PREFIX.length));
    for (const key of keys)
      if (owner === undefined || read(key)?.of !== owner) write(key, undefined);
  } catch {
    // The browser may forbid storage. Then no draft is stored.
  }
}

function read(key: string): Draft | undefined {
  try {
    return (
      (JSON.parse(sessionStorage.getItem(PREFIX + key) ?? 'null') as Draft | null) ?? undefined
    );
  } catch {
    return undefined;
  }
}

function write(key: string, draft: Draft | undefined): void {
  try {
    // The last guard: no private key is stored, even if a page does not check for one.
    if (draft === undefined || holdsPrivateKey(draft.value))
      sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, JSON.stringify(draft));
  } catch {
    // The browser may forbid storage. Then the draft is lost, as without this function.
  }
}
