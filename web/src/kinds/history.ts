import type { Environment } from '../api/schema';
import { stopReason } from './lifecycle';
import { toneOfPart, type Tone } from './tone';
import { isHelper, nameOf } from './tree';
import { compare } from './format';

/** An event in the life of an environment. */
export interface Happening {
  at: string;
  tone: Tone;
  title: string;
  detail?: string;
}

/**
 * The events that the environment's status shows, the newest first. A resource that waits for other
 * deletions has no event yet.
 */
export function historyOf(environment: Environment): Happening[] {
  const { createdAt, deletedAt, parts, ready, owner, lifecycle } = environment;
  const happenings: Happening[] = parts
    .filter((part) => !isHelper(part) && part.since !== '')
    .map((part) => {
      const tone = toneOfPart(part, Boolean(deletedAt));
      const said = part.ready
        ? 'became ready'
        : (WORDS[part.reason ?? ''] ?? part.reason?.toLowerCase() ?? 'is being created');
      return {
        at: part.since,
        tone,
        title: `${nameOf(part)} ${said}`,
        detail: tone === 'bad' ? (part.message ?? undefined) : undefined,
      };
    });
  const times = happenings.map(({ at }) => at).sort();
  if (ready && times.length > 0)
    happenings.push({ at: times.at(-1)!, tone: 'good', title: 'All resources are ready' });
  if (lifecycle?.warnedAt)
    happenings.push({ at: lifecycle.warnedAt, tone: 'leaving', title: 'Warning of the end' });
  if (lifecycle?.stoppedAt) {
    const title = `Stopped ${stopReason(environment)}`.trim();
    happenings.push({ at: lifecycle.stoppedAt, tone: 'idle', title });
  }
  if (deletedAt) happenings.push({ at: deletedAt, tone: 'leaving', title: 'Deletion requested' });
  if (createdAt)
    happenings.push({
      at: createdAt,
      tone: 'idle',
      title: owner ? `Created by ${owner}` : 'Created',
    });
  const order = (happening: Happening) =>
    happening.at === createdAt && happening.tone === 'idle' ? 1 : 0;
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
