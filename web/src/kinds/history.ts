import type { Environment } from '../api/schema';
import { stopReason } from './lifecycle';
import { moodOfPart, type Mood } from './mood';
import { isHelper, nameOf } from './tree';
import { compare } from './words';

/** Something that happened to an environment. */
export interface Happening {
  at: string;
  mood: Mood;
  title: string;
  detail?: string;
}

/**
 * What happened, the newest first, as far as the environment itself tells. Of parts that wait for
 * others to go first nothing has happened yet.
 */
export function historyOf(environment: Environment): Happening[] {
  const { createdAt, deletedAt, parts, ready, owner, lifecycle } = environment;
  const happenings: Happening[] = parts
    .filter((part) => !isHelper(part) && part.since !== '')
    .map((part) => {
      const mood = moodOfPart(part, Boolean(deletedAt));
      const said = part.ready
        ? 'became ready'
        : (WORDS[part.reason ?? ''] ?? part.reason?.toLowerCase() ?? 'is being created');
      return {
        at: part.since,
        mood,
        title: `${nameOf(part)} ${said}`,
        detail: mood === 'bad' ? (part.message ?? undefined) : undefined,
      };
    });
  const times = happenings.map(({ at }) => at).sort();
  if (ready && times.length > 0)
    happenings.push({ at: times.at(-1)!, mood: 'good', title: 'All resources are ready' });
  if (lifecycle?.warnedAt)
    happenings.push({ at: lifecycle.warnedAt, mood: 'leaving', title: 'Warning of the end' });
  if (lifecycle?.stoppedAt) {
    const title = `Stopped ${stopReason(environment)}`.trim();
    happenings.push({ at: lifecycle.stoppedAt, mood: 'idle', title });
  }
  if (deletedAt) happenings.push({ at: deletedAt, mood: 'leaving', title: 'Deletion requested' });
  if (createdAt)
    happenings.push({
      at: createdAt,
      mood: 'idle',
      title: owner ? `Created by ${owner}` : 'Created',
    });
  const order = (happening: Happening) =>
    happening.at === createdAt && happening.mood === 'idle' ? 1 : 0;
  return happenings
    .map((one, index) => ({ one, index }))
    .sort((a, b) => compare(b.one.at, a.one.at) || order(a.one) - order(b.one) || b.index - a.index)
    .map(({ one }) => one);
}

const WORDS: Record<string, string> = {
  Creating: 'is being created',
  Waiting: 'is waiting',
  Failed: 'failed',
  Unavailable: 'is not available',
  Deleting: 'is being deleted',
  Paused: 'is paused',
  NotAccepted: 'was not accepted',
};
