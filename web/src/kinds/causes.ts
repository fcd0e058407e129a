import type { Environment, Part } from '../api/schema';
import { moodOf } from './mood';
import { compare } from './words';

/** Environments that fail for one and the same reason. */
export interface Cause {
  /** The reason without the names and numbers that differ from one to the next. */
  key: string;
  /** One of them, in the provider's own words. */
  words: string;
  kinds: string[];
  hits: { environment: Environment; part?: Part }[];
  /** Since when the first of them fails (RFC 3339), empty where none says so. */
  since: string;
}

/** What fails, grouped by cause, the most frequent first: parts, what is refused, and what Crossplane does nothing about. */
export function causesOf(environments: readonly Environment[], now: number): Cause[] {
  const causes = new Map<string, Cause>();
  const add = (words: string, kind: string, hit: Cause['hits'][number], since: string) => {
    // What says nothing of the reason has perhaps another one elsewhere.
    const key = words === hit.part?.reason || words === WORDLESS ? `${kind} ${words}` : nameless(words, hit.environment);
    const cause = causes.get(key) ?? { key, words, kinds: [], hits: [], since };
    if (!cause.kinds.includes(kind)) cause.kinds.push(kind);
    cause.hits.push(hit);
    if (since !== '' && (cause.since === '' || since < cause.since)) cause.since = since;
    causes.set(key, cause);
  };
  for (const environment of environments) {
    const failing = environment.parts.filter(({ reason }) => reason === 'Failed' || reason === 'NotAccepted');
    for (const part of failing) add(part.message ?? part.reason!, part.kind, { environment, part }, part.since);
    if (failing.length > 0) continue;
    if (environment.failed) add(environment.message || environment.phase, environment.kind, { environment }, environment.createdAt ?? '');
    else if (isStuck(environment, now)) add(environment.message || SILENT, environment.kind, { environment }, underWaySince(environment));
  }
  return [...causes.values()].sort((a, b) => b.hits.length - a.hits.length || compare(a.since, b.since));
}

/** What is said of an environment that says nothing of itself. */
const SILENT = 'Crossplane says nothing of it: perhaps it does not run, or has no Composition that fits.';

/** How long Crossplane may take to begin, in milliseconds. */
const PATIENCE = 60_000;

/**
 * Whether it becomes nothing although no part of it fails: Crossplane cannot compose it, or does not begin to. Else what it says speaks
 * of the part that it waits for, or of all.
 */
function isStuck(environment: Environment, now: number): boolean {
  const composed = /^(\S+ \([A-Z]\w*\): |(all \d+ resources are|the only resource is) ready$)/.test(environment.message);
  return moodOf(environment) === 'busy' && !composed && Date.parse(underWaySince(environment)) < now - PATIENCE;
}

/** How much of a message tells causes apart: Crossplane's own are not cut, and may hold a provider's whole answer. */
const LONGEST = 4_000;

/** What clouds give every request: a long word of encoded bytes. */
const ENCODED = /[\w+/=-]{60,}/g;

/** A word with its dashes, in which there may be an id or a number. */
const WORD = /[\w-]+/g;

/** What the function says of a part whose provider says nothing. */
const WORDLESS = 'its provider gives no message';

/** A message without what tells one environment from the next: its names, ids, addresses and numbers. */
function nameless(words: string, { name, namespace, parts }: Environment): string {
  const own = [name, namespace, ...parts.flatMap((part) => [part.name ?? '', part.externalName ?? ''])].filter((text) => text.length > 2);
  const without = own.sort((a, b) => b.length - a.length).reduce((text, one) => text.replaceAll(one, '…'), words);
  const encoded = (word: string) => (/\d/.test(word) && /[a-z]/.test(word) && /[A-Z]/.test(word) ? '#' : word);
  return without.slice(0, LONGEST).replace(ENCODED, encoded).replace(WORD, numberless).replace(/\s+/g, ' ');
}

/** A word without ids and numbers. Each piece of it is looked at once: a message may be long. */
function numberless(word: string): string {
  const pieces: { text: string; hex: boolean }[] = [];
  for (const text of word.split('-')) {
    const hex = /^[\da-f]*$/i.test(text);
    const last = pieces.at(-1);
    if (hex && last?.hex) last.text += `-${text}`;
    else pieces.push({ text, hex });
  }
  return pieces.map(({ text, hex }) => (/\d/.test(text) && (hex || /^[A-Z\d]{10,}$/.test(text)) ? '#' : text)).join('-');
}

/** Since when nothing of it has moved: what was asked for long ago may have been changed a moment ago (RFC 3339). */
export function underWaySince({ deletedAt, createdAt, parts }: Environment): string {
  const waiting = parts.filter(({ ready, since }) => !ready && since !== '').map(({ since }) => since);
  return deletedAt ?? waiting.sort().at(-1) ?? createdAt ?? '';
}

/** What still becomes ready, and has been for longer than people wait; the longest first. */
export function slowOf(environments: readonly Environment[], now: number, minutes = 30): Environment[] {
  const old = now - minutes * 60_000;
  const slow = environments.filter((environment) => {
    const mood = moodOf(environment);
    return (mood === 'busy' || mood === 'leaving') && !environment.failed && !isStuck(environment, now) && Date.parse(underWaySince(environment)) < old;
  });
  return slow.sort((a, b) => compare(underWaySince(a), underWaySince(b)));
}
