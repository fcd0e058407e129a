import type { Data } from './schema';

/** A field that differs: its path and its new value. A removed field has the value `undefined`. */
export interface Difference {
  path: string[];
  value: unknown;
}

/** The fields of `after` that differ from `before`. A list counts as one field. */
export function differences(before: unknown, after: unknown, path: string[] = []): Difference[] {
  if (isGroup(before) && isGroup(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return names.flatMap((name) => differences(before[name], after[name], [...path, name]));
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, value: after }];
}

/** Returns a copy of the data with these differences applied. */
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

/** The fields that another user changed, and those that both users changed. */
export interface Meanwhile {
  theirs: string[][];
  both: string[][];
}

/**
 * Compares the spec at the start of editing with the current spec. Returns `undefined` if they are
 * equal.
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
