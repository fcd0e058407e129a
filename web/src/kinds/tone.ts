import type { Environment, Part } from '../api/schema';

/** How something fares; each has a colour, a sign and a word, so that no one of them is needed. */
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

/** Of a part; while its environment goes, whatever is left is leaving. */
export function toneOfPart({ ready, reason }: Part, leaving = false): Tone {
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
