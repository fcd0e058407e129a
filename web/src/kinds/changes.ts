import type { Data } from './schema';

/** A field that differs: its path, and what it is now; `undefined` where it is gone. */
export interface Difference {
  path: string[];
  value: unknown;
}

/** What is other in `after` than in `before`, field by field; lists count as one. */
export function differences(before: unknown, after: unknown, path: string[] = []): Difference[] {
  if (isGroup(before) && isGroup(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return names.flatMap((name) => differences(before[name], after[name], [...path, name]));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, value: after }];
}

/** Data with these differences brought in. */
export function changed(data: Data, changes: readonly Difference[]): Data {
  const copy = structuredClone(data);
  for (const { path, value } of changes) {
    const last = path.at(-1);
    if (last === undefined) continue;
    const place = path
      .slice(0, -1)
      .reduce<Data>((one, step) => (one[step] = isGroup(one[step]) ? one[step] : {}), copy);
    if (value === undefined) Reflect.deleteProperty(place, last);
    else place[last] = value;
  }
  return copy;
}

/** What somebody else has changed meanwhile, and what of that one's own changes would replace. */
export interface Meanwhile {
  theirs: string[][];
  both: string[][];
}

/**
 * What has changed between what one's own changes began with and what there is now; nothing where
 * nobody has changed anything.
 */
export function meanwhile(
  before: Data,
  now: Data,
  mine: readonly Difference[],
): Meanwhile | undefined {
  const theirs = differences(before, now).map(({ path }) => path);
  const dotted = new Set(theirs.map((path) => path.join('.')));
  return theirs.length > 0
    ? { theirs, both: mine.map(({ path }) => path).filter((path) => dotted.has(path.join('.'))) }
    : undefined;
}

function isGroup(value: unknown): value is Data {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
