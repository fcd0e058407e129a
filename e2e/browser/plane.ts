import { world } from './world.ts';

/** The behaviour of a cloud for resources of one kind. Absent fields mean normal behaviour. */
interface Rule {
  /** The cloud refuses to create them, with this message. */
  create?: string;
  /** The cloud refuses to delete them, with this message. */
  delete?: string;
  /** The resources exist but are unavailable, for this reason. */
  unavailable?: string;
}

async function ask(method: string, path: string, body?: Rule): Promise<Response> {
  const response = await fetch(`${world.remote}/${path}`, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return response;
}

/** The clouds behind ada's environments. */
export const cloud = {
  /** Sets the behaviour for an environment's resources of this kind. */
  treats: (environment: string, kind: string, rule: Rule) => ask('PUT', `rules/${environment}/${kind}`, rule),
  /** Restores the normal behaviour. */
  relents: (environment: string, kind: string) => ask('DELETE', `rules/${environment}/${kind}`),
};

/** Kubernetes' API server. */
export const apiServer = {
  stop: () => ask('DELETE', 'processes/kube-apiserver'),
  start: () => ask('PUT', 'processes/kube-apiserver'),
};

/** Crossplane. After an outage of the API server, it receives events later than other clients. */
export const crossplane = {
  /** Waits until Crossplane receives events of an environment. */
  hearsOf: (environment: string) => ask('PUT', `environments/${environment}`),
};

/** The names of the environments that ada's team has in the cluster. */
export async function existing(): Promise<string[]> {
  return (await ask('GET', 'environments')).json() as Promise<string[]>;
}
