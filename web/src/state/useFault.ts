import type { Diagnosis, Environment } from '../api/schema';
import { counts } from '../kinds/causes';
import { nowAtom } from './now';
import { useValue } from './useValue';

/** Why an environment is not ready, if that counts by now. */
export function useFault({ diagnosis }: Pick<Environment, 'diagnosis'>): Diagnosis | undefined {
  const is = useValue(nowAtom, (now) => counts(diagnosis, now));
  return is && diagnosis ? diagnosis : undefined;
}
