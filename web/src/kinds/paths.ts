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

/** Where an environment is in the API. */
export function placeOf({
  namespace,
  name,
  plural,
  apiVersion,
}: Pick<Environment, 'namespace' | 'name' | 'plural' | 'apiVersion'>) {
  return { namespace, name, kind: kindPath({ plural, apiVersion }) };
}

/** Whether an endpoint is something that a browser of anybody's can open. */
export function isLink(text: string): boolean {
  return /^https?:\/\/[^\s]+$/.test(text) && !isInside(text);
}

/** Names that only a cluster's own DNS knows, and private addresses. */
const INSIDE =
  /(^|\.)(svc|local|internal|localhost)$|^10\.|^127\.|^169\.254\.|^192\.168\.|^172\.(1[6-9]|2\d|3[01])\.|^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|^\[(::1|f[cd]|fe[89ab])/i;

/** Whether an endpoint is reached from inside its cluster or network only. */
export function isInside(text: string): boolean {
  try {
    return INSIDE.test(new URL(text.includes('://') ? text : `tcp://${text}`).hostname);
  } catch {
    return false;
  }
}
