import { useStore, type Atom } from 'jotai';
import { useCallback, useSyncExternalStore } from 'react';

/**
 * What follows from an atom that every card reads and that seldom makes a difference to one: it is
 * drawn again only when what follows, a
 * primitive, has changed. That is drawn at once, and not in a transition.
 */
export function useValue<T, F extends string | number | boolean>(
  atom: Atom<T>,
  follows: (value: T) => F,
): F {
  const store = useStore();
  const subscribe = useCallback((changed: () => void) => store.sub(atom, changed), [store, atom]);
  return useSyncExternalStore(subscribe, () => follows(store.get(atom)));
}
