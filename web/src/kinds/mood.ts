import type { Environment, Part } from '../api/schema';

/** How something fares; each has a colour, a sign and a word, so that no one of them is needed. */
export type Mood = 'good' | 'busy' | 'bad' | 'leaving' | 'idle';

export function moodOf({
  phase,
  failed,
  deletedAt,
  ready,
}: Pick<Environment, 'phase' | 'failed' | 'deletedAt' | 'ready'>): Mood {
  if (deletedAt || phase === 'Deleting') return 'leaving';
  if (failed) return 'bad';
  if (['Paused', 'ScaledToZero', 'Stopped'].includes(phase)) return 'idle';
  // An expired environment still runs.
  if (['Stopping', 'Starting', 'Expired'].includes(phase)) return 'busy';
  return ready ? 'good' : 'busy';
}

/** Of a part; while its environment goes, whatever is left is leaving. */
export function moodOfPart({ ready, reason }: Part, leaving = false): Mood {
  if (reason === 'Failed' || reason === 'NotAccepted') return 'bad';
  if (leaving || reason === 'Deleting') return 'leaving';
  if (reason === 'Paused') return 'idle';
  return ready ? 'good' : 'busy';
}

/** Reads `4/6`; `undefined` where nothing is known yet. */
export function progressOf(text: string): { done: number; of: number } | undefined {
  const [, done, of] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  return done && of && Number(of) > 0 ? { done: Number(done), of: Number(of) } : undefined;
}
