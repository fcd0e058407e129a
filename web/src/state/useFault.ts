import type { Diagnosis, Environment } from '../api/schema';
import { counts } from '../kinds/causes';
import { nowAtom } from './now';
import { useValue } from './useValue';

/** The diagnosis of an environment, if it applies already. */
export function useFault({ diagnosis }: Pick<Environment, 'diagnosis'>): Diagnosis | undefined {
  const is = useValue(nowAtom, (now) => counts(diagnosis, now));
  return is && diagnosis ? diagnosis : undefined;
}
