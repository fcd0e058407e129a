import { useAtomValue } from 'jotai';
import { useEffect, useState } from 'react';
import { holdsPrivateKey } from '../kinds/secrets';
import { meAtom } from './session';

/** Under what a draft is kept in this tab. */
const PREFIX = 'paved-kept ';

/** A draft, and whose it is: somebody else may sign in after them. */
interface Draft {
  of: string;
  value: unknown;
}

/**
 * What was typed before one left this page, for another one or to sign in again. It is read when a
 * form begins.
 */
export function useDraft(key: string): unknown {
  const me = useAtomValue(meAtom);
  const [before] = useState(() => read(key));
  return before && before.of === me?.owner ? before.value : undefined;
}

/**
 * Keeps what is typed, in this tab alone, until it is sent or given up: `discardDraft`. `undefined`
 * is nothing typed.
 */
export function useSaveDraft(key: string, value: unknown): void {
  const owner = useAtomValue(meAtom)?.owner;
  useEffect(() => {
    if (owner !== undefined) write(key, value === undefined ? undefined : { of: owner, value });
  }, [owner, key, value]);
}

/** Forgets what was typed: it was sent, or given up. */
export function discardDraft(key: string): void {
  write(key, undefined);
}

/**
 * Forgets every draft but this person's: nothing of somebody's stays in a page that somebody else
 * uses next.
 */
export function discardOtherDrafts(owner?: string): void {
  try {
    const keys = Object.keys(sessionStorage)
      .filter((name) => name.startsWith(PREFIX))
      .map((name) => name.slice(PREFIX.length));
    for (const key of keys)
      if (owner === undefined || read(key)?.of !== owner) write(key, undefined);
  } catch {
    // Storage may be forbidden: then nothing is kept.
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
    // The last guard: whatever a page does, a private key is not kept.
    if (draft === undefined || holdsPrivateKey(draft.value))
      sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, JSON.stringify(draft));
  } catch {
    // Storage may be forbidden: then it is lost, as it would be without.
  }
}
