import { useAtomValue } from 'jotai';
import { useEffect, useState } from 'react';
import { sessionAtom } from './session';

/** What was typed before a sign-in led away from this page. It is read when a form begins; `useKeeping` clears it. */
export function useKept(key: string): unknown {
  const [before] = useState(() => read(key));
  return before;
}

/** Keeps what is typed, in this tab alone, from the moment that a session has ended. */
export function useKeeping(key: string, value: unknown): void {
  const { state } = useAtomValue(sessionAtom);
  useEffect(() => {
    if (state === 'out') write(key, value);
    else if (state === 'in') write(key, undefined);
  }, [state, key, value]);
}

function read(key: string): unknown {
  try {
    const text = sessionStorage.getItem(`paved-kept ${key}`);
    return text === null ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

function write(key: string, value: unknown): void {
  try {
    if (value === undefined) sessionStorage.removeItem(`paved-kept ${key}`);
    else sessionStorage.setItem(`paved-kept ${key}`, JSON.stringify(value));
  } catch {
    // Storage may be forbidden: then it is lost, as it would be without.
  }
}
