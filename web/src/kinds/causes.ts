import type { Cause, Diagnosis, Environment, Part } from '../api/schema';
import { toneOf, toneOfPart } from './tone';
import { compare } from './format';

/** Environments that fail for the same cause. */
export interface Group {
  cause: Cause;
  /** The message of one of them. */
  message: string;
  kinds: string[];
  hits: { environment: Environment; part?: Part }[];
  /** The start of the first failure (RFC 3339), or an empty text if it is unknown. */
  since: string;
}

/**
 * Whether a diagnosis applies already. Before its start, the environment may only be in progress.
 */
export function counts(diagnosis: Diagnosis | null | undefined, now: number): boolean {
  return Boolean(diagnosis) && (!diagnosis?.from || Date.parse(diagnosis.from) <= now);
}

/** The problem of an environment as a whole. */
function faultOf(environment: Environment, now: number): Diagnosis | undefined {
  const { diagnosis } = environment;
  const isFault =
    diagnosis && !diagnosis.slot && toneOf(environment) !== 'idle' && counts(diagnosis, now);
  return isFault ? diagnosis : undefined;
}

/**
 * The failures, grouped by cause, the most frequent first. A problem of the whole environment
 * replaces those of its resources, which may belong to an older spec.
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
      if (part.cause && toneOfPart(part) === 'bad')
        add(part.cause, part.message ?? '', part.kind, { environment, part }, part.since);
    }
  }
  return [...groups.values()].sort(
    (a, b) => b.hits.length - a.hits.length || compare(a.since, b.since),
  );
}

/**
 * The time of the last progress (RFC 3339). An old environment may have been changed a moment ago.
 */
export function underWaySince({ deletedAt, createdAt, parts }: Environment): string {
  const waiting = parts
    .filter(({ ready, since }) => !ready && since !== '')
    .map(({ since }) => since);
  return deletedAt ?? waiting.sort().at(-1) ?? createdAt ?? '';
}

/** The environments that have been in progress longer than `minutes`, the longest first. */
export function slowOf(
  environments: readonly Environment[],
  now: number,
  minutes = 30,
): Environment[] {
  const old = now - minutes * 60_000;
  const slow = environments.filter((environment) => {
    const tone = toneOf(environment);
    return (
      (tone === 'busy' || tone === 'leaving') &&
      !environment.failed &&
      environment.phase !== 'Expired' &&
      !faultOf(environment, now) &&
      Date.parse(underWaySince(environment)) < old
    );
  });
  return slow.sort((a, b) => compare(underWaySince(a), underWaySince(b)));
}
