import { useAtomValue } from 'jotai';
import type { KindMetadata, OfKind } from '../kinds/metadata';
import { kindMetadataAtom } from './session';

/** The facts about the kind of an environment. */
export function useKindMetadata(of: OfKind): KindMetadata {
  return useAtomValue(kindMetadataAtom)(of);
}
