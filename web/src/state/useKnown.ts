import { useAtomValue } from 'jotai';
import type { Known, OfKind } from '../kinds/known';
import { knownAtom } from './session';

/** The facts about the kind of an environment. */
export function useKnown(of: OfKind): Known {
  return useAtomValue(knownAtom)(of);
}
