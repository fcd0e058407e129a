import { useStore, type Atom } from 'jotai';
import { useCallback, useSyncExternalStore } from 'react';

/**
 * A primitive value derived from an atom. A component renders again only when the derived value
 * changes. It suits an atom that all cards read. The render is immediate, not in a transition.
 */
export function useValue<T, F extends string | number | boolean>(
  atom: Atom<T>,
  follows: (value: T) => F,
): F {
  const store = useStore();
  const subscribe = useCallback((changed: () => void) => store.sub(atom, changed), [store, atom]);
  return useSyncExternalStore(subscribe, () => follows(store.get(atom)));
}
