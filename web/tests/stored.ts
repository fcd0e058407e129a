import type { Environment, OnDeletion, Part, Whole } from '../src/api/schema';
import { diagnosisOf, infoOf, type Api, type Stage } from './data.ts';
import { goldenOf } from './golden.ts';

/** An environment in the world: what the portal says of it, and its spec. */
export interface Stored {
  api: Api;
  view: Environment;
  spec: Record<string, unknown>;
}

/** An environment whose parts are as far as a golden file has them. */
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
    sshClosed:
      api === 'gpu-workspace' &&
      endpoint !== undefined &&
      !parts.some(({ slot }) => slot.startsWith('ssh-')),
    ...base,
  };
}

/** How many parts are ready, as the portal writes it. */
export function progressOf(parts: Part[]): string {
  const counted = parts.filter(({ kind }) => !['Usage', 'ProviderConfig'].includes(kind));
  return `${counted.filter(({ ready }) => ready).length}/${counted.length}`;
}

/** What it is called in the world. */
export function place({
  kind,
  namespace,
  name,
}: Pick<Environment, 'kind' | 'namespace' | 'name'>): string {
  return `${kind}/${namespace}/${name}`;
}

/** The Secret with its connection details, where it names one. */
export function secretOf({ spec }: Pick<Stored, 'view' | 'spec'>): string | undefined {
  return (spec['writeConnectionSecretToRef'] as { name?: string } | undefined)?.name;
}

/** Everything of it, as one environment is answered. */
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
