import type { Data } from './schema';

/** The beginnings of the names of labels and annotations that a cluster writes. */
const CLUSTERS = /(^|\.)(crossplane\.io|kubernetes\.io|k8s\.io|argoproj\.io)\//;

/** The fields of a claim that Crossplane writes into the spec. */
const WRITTEN = [
  'claimRef',
  'compositeDeletePolicy',
  'compositionRevisionRef',
  'compositionUpdatePolicy',
  'publishConnectionDetailsTo',
  'resourceRef',
  'resourceRefs',
];

/** An object as a user would write it: without the fields that belong to its cluster. */
export function forGit(object: Data): Data {
  const { apiVersion, kind, metadata = {}, spec = {} } = object as Record<string, Data>;
  const { name, namespace, labels, annotations } = metadata as Record<string, unknown>;
  const { crossplane, ...own } = without(spec, WRITTEN);
  const choices = without((crossplane ?? {}) as Data, WRITTEN);
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...kept('labels', labels),
      ...kept('annotations', annotations),
    },
    spec: { ...own, ...(Object.keys(choices).length > 0 && { crossplane: choices }) },
  };
}

function without(data: Data, names: readonly string[]): Data {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !names.includes(name)));
}

/** The labels or annotations of the user, if there are any. */
function kept(place: string, all: unknown): Data {
  const own = Object.entries((all ?? {}) as Data).filter(([name]) => !CLUSTERS.test(name));
  return own.length > 0 ? { [place]: Object.fromEntries(own) } : {};
}
