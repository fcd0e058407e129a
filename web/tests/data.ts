import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Kind, Part, Resource } from '../src/api/schema';

/** The repository: what it holds is what the pages are tested with. */
const ROOT = join(import.meta.dirname, '..', '..');

/** The APIs, by the names of their files. */
export const APIS = ['gpu-workspace', 'application-environment', 'unified-environment', 'stock-pool', 'virtual-environment'] as const;
export type Api = (typeof APIS)[number];

/** How far an example's parts are. */
export type Stage = 'nothing' | 'half-way' | 'failing' | 'ready';

interface Definition {
  spec: {
    group: string;
    names: Names;
    claimNames?: Names;
    versions: { name: string; schema: { openAPIV3Schema: { properties: { spec: Kind['schema'] & { description: string } } } } }[];
  };
}
interface Names {
  kind: string;
  plural: string;
}

function read(...path: string[]): string {
  return readFileSync(join(ROOT, ...path), 'utf8');
}

const known = new Map<string, unknown>();

/** Reads once what is asked for often, and hands out copies. */
function once<T>(name: string, make: () => T): T {
  if (!known.has(name)) known.set(name, make());
  return structuredClone(known.get(name)) as T;
}

/** What the portal says of an API's kind, from the XRD itself. */
export function kindOf(api: Api, flavour: 'claims' | 'namespaced' = 'claims'): Kind {
  const path = flavour === 'claims' ? ['xrd'] : ['namespaced', 'xrd'];
  const { spec } = parse(read(...path, `${api}.yaml`)) as Definition;
  const names = spec.claimNames ?? spec.names;
  const version = spec.versions[0]!;
  const schema = version.schema.openAPIV3Schema.properties.spec;
  const apiVersion = `${spec.group}/${version.name}`;
  return { kind: names.kind, apiVersion, plural: names.plural, description: schema.description, claim: flavour === 'claims', mayCreate: true, schema };
}

/** An API's example, as one would apply it. */
export function exampleOf(api: Api): { metadata: { name: string; namespace: string }; spec: Record<string, unknown> } {
  return once(`example ${api}`, () => parse(read('examples', api, 'claim.yaml')) as ReturnType<typeof exampleOf>);
}

/** What the function answers for an API's example at a stage: its golden file. */
export function goldenOf(api: Api, stage: Stage): Golden {
  return once(`golden ${api} ${stage}`, () => readGolden(api, stage));
}

interface Golden {
  status: Record<string, unknown>;
  message: string;
  parts: Part[];
  resources: Resource[];
}

function readGolden(api: Api, stage: Stage): Golden {
  const [, ...pieces] = read('tests', 'snapshots', `${api}__claims__${stage}.snap`).split(/^--- # /m);
  const values = pieces.map((piece) => ({ slot: /^\S+/.exec(piece)?.[0] ?? '', value: parse(piece.slice(piece.indexOf('\n'))) as Document }));
  const { resources: parts = [], ...status } = values.find(({ slot }) => slot === 'composite')?.value.status ?? {};
  const message = values.find(({ slot }) => slot === 'answer')?.value.conditions?.[0]?.message ?? '';
  const resources = values
    .filter(({ slot, value }) => slot !== 'composite' && slot !== 'answer' && value.kind)
    .map(({ slot, value }) => ({ slot, kind: value.kind!, manifest: value as Record<string, unknown> }));
  return { status, message, parts, resources };
}

interface Document {
  kind?: string;
  status?: { resources?: Part[] } & Record<string, unknown>;
  conditions?: { message: string }[];
}
