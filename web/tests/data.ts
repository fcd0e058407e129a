import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Cause, Diagnosis, Kind, Part } from '../src/api/schema';
import { toneOfPart } from '../src/kinds/tone.ts';
import { toLabel } from '../src/kinds/format.ts';

/** The repository, which has the schemas and golden files for the tests. */
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

/** The stage of an example's resources. */
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

/** Computes a value once, and returns copies. */
export function once<T>(name: string, make: () => T): T {
  if (!known.has(name)) known.set(name, make());
  return structuredClone(known.get(name)) as T;
}

/** The facts that the source of an API states. */
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

/** A cause in the form of the portal's. */
export function causeOf(code: string, params: Record<string, string> = {}): Cause {
  return {
    code,
    params,
    headline: toLabel(code),
    remediation: `What helps: ${toLabel(code)}.`,
    group: JSON.stringify([code, params]),
  };
}

/** The portal's diagnosis of the resources: the first failed one. */
export function diagnosisOf(parts: readonly Part[]): Diagnosis | undefined {
  const failing = parts.find((part) => part.cause && toneOfPart(part) === 'bad');
  return failing?.cause ? { cause: failing.cause, slot: failing.slot } : undefined;
}

/** A schema with the words that the portal adds to patterns. */
function described<T>(schema: T): T {
  const words = (_: string, value: unknown) =>
    typeof value === 'object' && value !== null && 'pattern' in value
      ? { ...value, 'x-pattern-in-words': 'the words of the server' }
      : value;
  return JSON.parse(JSON.stringify(schema, words)) as T;
}

/** A kind as the portal describes it, from the XRD. */
export function kindOf(api: Api, flavour: 'claims' | 'namespaced' = 'claims'): Kind {
  const path = flavour === 'claims' ? ['xrd'] : ['namespaced', 'xrd'];
  const { spec } = parse(read(...path, `${api}.yaml`)) as Definition;
  const names = spec.claimNames ?? spec.names;
  const version = spec.versions[0]!;
  const schema = described(version.schema.openAPIV3Schema.properties.spec);
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
    offered: flavour === 'claims',
    mayCreate: true,
    schema,
  };
}

/** The example of an API, as a user would apply it. */
export function exampleOf(api: Api): {
  metadata: { name: string; namespace: string };
  spec: Record<string, unknown>;
} {
  return once(
    `example ${api}`,
    () => parse(read('examples', api, 'claim.yaml')) as ReturnType<typeof exampleOf>,
  );
}
