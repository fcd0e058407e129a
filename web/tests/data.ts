import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Cause, Diagnosis, Kind, Part } from '../src/api/schema';
import { moodOfPart } from '../src/kinds/mood.ts';
import { humane } from '../src/kinds/words.ts';

/** The repository: what it holds is what the pages are tested with. */
const ROOT = join(import.meta.dirname, '..', '..');

/** The APIs, by the names of their files. */
export const APIS = [
  'gpu-workspace',
  'application-environment',
  'unified-environment',
  'stock-pool',
  'virtual-environment',
] as const;
export type Api = (typeof APIS)[number];

/** How far an example's parts are. */
export type Stage = 'nothing' | 'half-way' | 'failing' | 'ready';

interface Definition {
  spec: {
    group: string;
    names: Names;
    claimNames?: Names;
    connectionSecretKeys?: string[];
    versions: {
      name: string;
      schema: {
        openAPIV3Schema: { properties: { spec: Kind['schema'] & { description: string } } };
      };
    }[];
  };
}
interface Names {
  kind: string;
  plural: string;
}

export function read(...path: string[]): string {
  return readFileSync(join(ROOT, ...path), 'utf8');
}

const known = new Map<string, unknown>();

/** Reads once what is asked for often, and hands out copies. */
export function once<T>(name: string, make: () => T): T {
  if (!known.has(name)) known.set(name, make());
  return structuredClone(known.get(name)) as T;
}

/** What an API says of itself, from its own source. */
export function infoOf(api: Api): {
  title: string;
  suffix: string;
  endpoints: string[];
  connectionTargets: string[];
  whenStopped: string;
} {
  const source = read('src', 'apis', `${api.replace('-', '_')}.rs`);
  const text = (name: string) => new RegExp(`^ +${name}: "(.+)",$`, 'm').exec(source)![1]!;
  const title = text('title');
  const all = (name: string, entry: RegExp) =>
    [...new RegExp(`^ +${name}: &\\[(.*?)\\],$`, 'ms').exec(source)![1]!.matchAll(entry)].map(
      ([, one]) => one!,
    );
  const connectionTargets = all('connection_targets', /ConnectionTarget::(\w+)/g).map((one) =>
    one.toLowerCase(),
  );
  return {
    title: title.charAt(0).toUpperCase() + title.slice(1),
    suffix: text('suffix'),
    endpoints: all('endpoints', /"(.+?)"/g),
    connectionTargets,
    whenStopped: text('when_stopped'),
  };
}

/** A cause as the portal words it. */
export function causeOf(code: string, params: Record<string, string> = {}): Cause {
  return {
    code,
    params,
    headline: humane(code),
    remediation: `What helps: ${humane(code)}.`,
    group: JSON.stringify([code, params]),
  };
}

/** What the portal diagnoses from parts: the first that fails. */
export function diagnosisOf(parts: readonly Part[]): Diagnosis | undefined {
  const failing = parts.find((part) => part.cause && moodOfPart(part) === 'bad');
  return failing?.cause ? { cause: failing.cause, slot: failing.slot } : undefined;
}

/** What the portal says of an API's kind, from the XRD itself. */
export function kindOf(api: Api, flavour: 'claims' | 'namespaced' = 'claims'): Kind {
  const path = flavour === 'claims' ? ['xrd'] : ['namespaced', 'xrd'];
  const { spec } = parse(read(...path, `${api}.yaml`)) as Definition;
  const names = spec.claimNames ?? spec.names;
  const version = spec.versions[0]!;
  const schema = version.schema.openAPIV3Schema.properties.spec;
  const apiVersion = `${spec.group}/${version.name}`;
  return {
    ...infoOf(api),
    api,
    connectionKeys: spec.connectionSecretKeys ?? [],
    kind: names.kind,
    apiVersion,
    plural: names.plural,
    description: schema.description,
    claim: flavour === 'claims',
    mayCreate: true,
    schema,
  };
}

/** An API's example, as one would apply it. */
export function exampleOf(api: Api): {
  metadata: { name: string; namespace: string };
  spec: Record<string, unknown>;
} {
  return once(
    `example ${api}`,
    () => parse(read('examples', api, 'claim.yaml')) as ReturnType<typeof exampleOf>,
  );
}
