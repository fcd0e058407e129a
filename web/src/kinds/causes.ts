import type { Cause, Diagnosis, Environment, Part } from '../api/schema';
import { moodOf, moodOfPart } from './mood';
import { compare } from './words';

/** Environments that fail for one and the same cause. */
export interface Group {
  cause: Cause;
  /** The message of one of them. */
  message: string;
  kinds: string[];
  hits: { environment: Environment; part?: Part }[];
  /** Since when the first of them fails (RFC 3339), empty where none says so. */
  since: string;
}

/** Whether a diagnosis counts by now: until then the environment may merely be under way. */
export function counts(diagnosis: Diagnosis | null | undefined, now: number): boolean {
  return Boolean(diagnosis) && (!diagnosis?.from || Date.parse(diagnosis.from) <= now);
}

/** What is wrong with an environment as a whole. */
function faultOf(environment: Environment, now: number): Diagnosis | undefined {
  const { diagnosis } = environment;
  const isFault =
    diagnosis && !diagnosis.slot && moodOf(environment) !== 'idle' && counts(diagnosis, now);
  return isFault ? diagnosis : undefined;
}

/**
 * What fails, grouped by cause, the most frequent first. What is wrong with the whole comes before
 * its parts: they may be of an older spec.
 */
export function causesOf(environments: readonly Environment[], now: number): Group[] {
  const groups = new Map<string, Group>();
  const add = (
    cause: Cause,
    message: string,
    kind: string,
    hit: Group['hits'][number],
    since: string,
  ) => {
    const group = groups.get(cause.group) ?? { cause, message, kinds: [], hits: [], since };
    if (!group.kinds.includes(kind)) group.kinds.push(kind);
    group.hits.push(hit);
    if (since !== '' && (group.since === '' || since < group.since)) group.since = since;
    groups.set(cause.group, group);
  };
  for (const environment of environments) {
    const fault = faultOf(environment, now);
    if (fault) {
      add(
        fault.cause,
        environment.message,
        environment.kind,
        { environment },
        underWaySince(environment),
      );
      continue;
    }
    for (const part of environment.parts) {
      if (part.cause && moodOfPart(part) === 'bad')
        add(part.cause, part.message ?? '', part.kind, { environment, part }, part.since);
    }
  }
  return [...groups.values()].sort(
    (a, b) => b.hits.length - a.hits.length || compare(a.since, b.since),
  );
}

/**
 * Since when nothing of it has moved: what was asked for long ago may have been changed a moment
 * ago (RFC 3339).
 */
export function underWaySince({ deletedAt, createdAt, parts }: Environment): string {
  const waiting = parts
    .filter(({ ready, since }) => !ready && since !== '')
    .map(({ since }) => since);
  return deletedAt ?? waiting.sort().at(-1) ?? createdAt ?? '';
}

/** What still becomes ready, and has been for longer than people wait; the longest first. */
export function slowOf(
  environments: readonly Environment[],
  now: number,
  minutes = 30,
): Environment[] {
  const old = now - minutes * 60_000;
  const slow = environments.filter((environment) => {
    const mood = moodOf(environment);
    return (
      (mood === 'busy' || mood === 'leaving') &&
      !environment.failed &&
      environment.phase !== 'Expired' &&
      !faultOf(environment, now) &&
      Date.parse(underWaySince(environment)) < old
    );
  });
  return slow.sort((a, b) => compare(underWaySince(a), underWaySince(b)));
}
