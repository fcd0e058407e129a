import type { Environment, Part } from '../api/schema';

/** The condition of an environment or resource. Colour, icon and word each show it alone. */
export type Tone = 'good' | 'busy' | 'bad' | 'leaving' | 'idle';

export function toneOf({
  phase,
  failed,
  deletedAt,
  ready,
}: Pick<Environment, 'phase' | 'failed' | 'deletedAt' | 'ready'>): Tone {
  if (deletedAt || phase === 'Deleting') return 'leaving';
  if (failed) return 'bad';
  if (phase === 'Paused' || phase === 'ScaledToZero') return 'idle';
  return ready ? 'good' : 'busy';
}

/**
 * The tone of a resource. While its environment is being deleted, it is `leaving` unless it failed.
 */
export function toneOfPart({ ready, reason }: Part, leaving = false): Tone {
  if (reason === 'Failed' || reason === 'NotAccepted') return 'bad';
  if (leaving || reason === 'Deleting') return 'leaving';
  if (reason === 'Paused') return 'idle';
  return ready ? 'good' : 'busy';
}

/** Parses `4/6`. Returns `undefined` if the progress is unknown. */
export function progressOf(text: string): { done: number; of: number } | undefined {
  const [, done, of] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  return done && of && Number(of) > 0 ? { done: Number(done), of: Number(of) } : undefined;
}
