import { useStore, type Atom } from 'jotai';
import { useCallback, useSyncExternalStore } from 'react';

/**
 * What follows from an atom, for parts of which a page has many. Jotai's `useAtomValue` draws whatever reads an atom once more when it
 * is there, all of it in one piece; this draws it again only when what follows has changed. It must be a primitive, or the atom's own.
 */
export function useValue<T, F>(atom: Atom<T>, follows: (value: T) => F): F {
  const store = useStore();
  const subscribe = useCallback((changed: () => void) => store.sub(atom, changed), [store, atom]);
  return useSyncExternalStore(subscribe, () => follows(store.get(atom)));
}

/** The atom's own value. */
export const itself = <T,>(value: T): T => value;
