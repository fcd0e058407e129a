import { useAtomValue } from 'jotai';
import type { KindMetadata, OfKind } from '../kinds/metadata';
import { kindMetadataAtom } from './session';

/** What is known of the kind of an environment. */
export function useKindMetadata(of: OfKind): KindMetadata {
  return useAtomValue(kindMetadataAtom)(of);
}
