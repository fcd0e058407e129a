import { parse } from 'yaml';
import type { Cause, Part, Resource } from '../src/api/schema';
import { toneOfPart } from '../src/kinds/tone.ts';
import { causeOf, once, read, type Api, type Stage } from './data.ts';

type Fields = Record<string, unknown>;

/** The function's answer to an API's example. */
export interface Golden {
  status: Fields;
  message: string;
  parts: Part[];
  resources: Resource[];
}

interface Document extends Fields {
  kind?: string;
  status?: Fields & { resources?: StatusPart[] };
  conditions?: { message: string }[];
}

/** A resource as the status reports it, without texts for its cause. */
type StatusPart = Omit<Part, 'cause'> & { cause?: Pick<Cause, 'code' | 'params'> };

/** The answer of the claims API at a stage, from its golden files. */
export function goldenOf(api: Api, stage: Stage): Golden {
  return once(`golden ${api} ${stage}`, () => {
    const documents = documentsOf(api, stage);
    const { resources: found = [], ...status } = documents.get('composite')?.status ?? {};
    const parts = found.map(worded);
    const message = documents.get('answer')?.conditions?.[0]?.message ?? '';
    const resources = [...documents.keys()].sort().flatMap((slot) => {
      const manifest = documents.get(slot)!;
      const { kind } = manifest;
      return kind ? [{ slot, kind, manifest }] : [];
    });
    return { status, message, parts, resources };
  });
}

/** A resource as the portal reports it. A failed resource always has a cause. */
function worded({ cause, ...part }: StatusPart): Part {
  if (cause) return { ...part, cause: causeOf(cause.code, cause.params) };
  return toneOfPart(part) === 'bad'
    ? { ...part, cause: causeOf('Unknown', { kind: part.kind }) }
    : part;
}

/**
 * The documents by name. The ready stage is whole. The other stages have their differences from it,
 * as `tests/golden` writes them.
 */
function documentsOf(api: Api, stage: Stage): Map<string, Document> {
  const isWhole = stage === 'ready';
  const documents = isWhole ? new Map<string, Document>() : documentsOf(api, 'ready');
  const text = read('tests', 'snapshots', `${api}__claims__${stage}.snap`);
  const [, ...sections] = text.split(/^--- # /m);
  for (const section of sections) {
    const [, name = '', note, body = ''] = /^(\S+)(?: \((.*)\))?\n([^]*)$/.exec(section) ?? [];
    const fields = (parse(body) ?? {}) as Fields;
    if (note === 'removed') documents.delete(name);
    else if (isWhole) documents.set(name, fields);
    else {
      const document = documents.get(name) ?? {};
      for (const [path, field] of Object.entries(fields)) set(document, path, field);
      documents.set(name, document);
    }
  }
  return documents;
}

/** Sets the field at a path like `status.resources.app.ready`. `null` removes the field. */
function set(document: Document, path: string, field: unknown): void {
  const found = [...path.matchAll(/\(([^)]*)\)|[^.]+/g)];
  const steps = found.map(([plain, inParentheses]) => inParentheses ?? plain);
  const last = steps.pop()!;
  const below = (value: unknown, step: string) => (value as Fields)[keyOf(value, step)];
  const parent = steps.reduce<unknown>(below, document);
  const key = keyOf(parent, last);
  if (field === null && Array.isArray(parent)) parent.splice(Number(key), 1);
  else if (field === null) Reflect.deleteProperty(parent as Fields, key);
  else (parent as Fields)[key] = field;
  if (Array.isArray(parent) && key !== last) {
    parent.sort((one, next) => (slotOf(one) < slotOf(next) ? -1 : 1));
  }
}

/** The key of a field, or the index of an entry. A new entry gets the next index. */
function keyOf(parent: unknown, step: string): string {
  if (!Array.isArray(parent) || /^\d+$/.test(step)) return step;
  const index = parent.findIndex((entry) => slotOf(entry) === step);
  return String(index < 0 ? parent.length : index);
}

function slotOf(entry: unknown): string {
  return (entry as { slot: string }).slot;
}
