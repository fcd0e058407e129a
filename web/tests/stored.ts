import type { Environment, OnDeletion, Part, Whole } from '../src/api/schema';
import { diagnosisOf, infoOf, type Api, type Stage } from './data.ts';
import { goldenOf } from './golden.ts';

/** An environment of the fake portal: its view in the API and its spec. */
export interface Stored {
  api: Api;
  view: Environment;
  spec: Record<string, unknown>;
}

/** An environment with resources in the state of a golden file. */
export function staged(
  api: Api,
  stage: Stage,
  base: Omit<
    Environment,
    | 'parts'
    | 'status'
    | 'phase'
    | 'ready'
    | 'failed'
    | 'message'
    | 'progress'
    | 'sshClosed'
    | 'sshKeyless'
    | 'paused'
  > &
    Partial<Environment>,
): Environment {
  const { status, message, parts } = goldenOf(api, stage);
  const {
    phase = 'Pending',
    progress = '',
    onDeletion,
    ...fields
  } = status as { phase?: string; progress?: string; onDeletion?: OnDeletion } & Record<
    string,
    unknown
  >;
  const endpoint = infoOf(api)
    .endpoints.map((field) => fields[field])
    .find((value) => typeof value === 'string');
  return {
    phase,
    progress,
    ready: stage === 'ready',
    failed: stage === 'failing',
    message,
    diagnosis: diagnosisOf(parts),
    parts: parts.map((part) => ({ ...part, since: base.createdAt ?? part.since })),
    status: fields,
    onDeletion,
    paused: false,
    endpoint,
    sshKeyless: false,
    sshClosed:
      api === 'gpu-workspace' &&
      endpoint !== undefined &&
      !parts.some(({ slot }) => slot.startsWith('ssh-')),
    ...base,
  };
}

/** The number of ready resources, as the portal writes it. */
export function progressOf(parts: Part[]): string {
  const counted = parts.filter(({ kind }) => !['Usage', 'ProviderConfig'].includes(kind));
  return `${counted.filter(({ ready }) => ready).length}/${counted.length}`;
}

/** The key of an environment in the fake portal. */
export function place({
  kind,
  namespace,
  name,
}: Pick<Environment, 'kind' | 'namespace' | 'name'>): string {
  return `${kind}/${namespace}/${name}`;
}

/** The name of the Secret for connection details, if the spec has one. */
export function secretOf({ spec }: Pick<Stored, 'view' | 'spec'>): string | undefined {
  return (spec['writeConnectionSecretToRef'] as { name?: string } | undefined)?.name;
}

/** An environment with its object, as the API returns it. */
export function whole({ view, spec }: Stored): Whole {
  const { name, namespace, labels, uid, resourceVersion, createdAt: creationTimestamp } = view;
  const annotations = { 'paved-road.fn.crossplane.io/owner': view.owner };
  const object = {
    apiVersion: view.apiVersion,
    kind: view.kind,
    metadata: { name, namespace, labels, annotations, uid, resourceVersion, creationTimestamp },
    spec,
    status: view.status,
  };
  return { ...view, object };
}
