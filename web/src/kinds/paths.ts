import type { Environment } from '../api/schema';
import { kindPath } from './metadata';

/** The page of an environment. */
export function pageOf({
  namespace,
  name,
  plural,
  apiVersion,
}: Pick<Environment, 'namespace' | 'name' | 'plural' | 'apiVersion'>): string {
  return `/environments/${namespace}/${kindPath({ plural, apiVersion })}/${name}`;
}

/** The path parameters of an environment in the API. */
export function placeOf({
  namespace,
  name,
  plural,
  apiVersion,
}: Pick<Environment, 'namespace' | 'name' | 'plural' | 'apiVersion'>) {
  return { namespace, name, kind: kindPath({ plural, apiVersion }) };
}

/** Whether an endpoint is a URL that a browser outside the cluster can open. */
export function isLink(text: string): boolean {
  return /^https?:\/\/[^\s]+$/.test(text) && !isInside(text);
}

/** Names that only the DNS of a cluster resolves, and private addresses. */
const INSIDE =
  /(^|\.)(svc|local|internal|localhost)$|^10\.|^127\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^\[(::1|f[cd]|fe[89ab])/i;

/** Whether an endpoint can only be reached from inside its cluster or network. */
export function isInside(text: string): boolean {
  try {
    return INSIDE.test(new URL(text.includes('://') ? text : `tcp://${text}`).hostname);
  } catch {
    return false;
  }
}
