import { useAtomValue } from 'jotai';
import type { Known, OfKind } from '../kinds/metadata';
import { knownAtom } from './session';

/** What is known of the kind of an environment. */
export function useKnown(of: OfKind): Known {
  return useAtomValue(knownAtom)(of);
}
