import { world } from './world.ts';

/** What a cloud does with parts of some kind; where nothing is said, as usual. */
interface Rule {
  /** Refuses to make them, in these words. */
  create?: string;
  /** Refuses to delete them, in these words. */
  delete?: string;
  /** Makes them, and they are of no use yet, for this reason. */
  unavailable?: string;
}

async function ask(method: string, path: string, body?: Rule): Promise<Response> {
  const response = await fetch(`${world.remote}/${path}`, { method, headers: { 'content-type': 'application/json' }, body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return response;
}

/** The clouds behind ada's environments. */
export const cloud = {
  /** From here on parts of this kind of this environment fare so. */
  treats: (environment: string, kind: string, rule: Rule) => ask('PUT', `rules/${environment}/${kind}`, rule),
  /** … and from here on as usual. */
  relents: (environment: string, kind: string) => ask('DELETE', `rules/${environment}/${kind}`),
};

/** Kubernetes' API server. */
export const apiServer = {
  stop: () => ask('DELETE', 'processes/kube-apiserver'),
  start: () => ask('PUT', 'processes/kube-apiserver'),
};

/** Crossplane, which listens to the API server again a while later than others do once that was away. */
export const crossplane = {
  /** Waits until it hears what becomes of an environment. */
  hearsOf: (environment: string) => ask('PUT', `environments/${environment}`),
};

/** The names of the environments that ada's team really has. */
export async function existing(): Promise<string[]> {
  return (await ask('GET', 'environments')).json() as Promise<string[]>;
}
