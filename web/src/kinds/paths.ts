import type { Environment } from '../api/schema';
import { kindPath } from './known';

/** The page of an environment. */
export function pageOf({ namespace, name, plural, apiVersion }: Pick<Environment, 'namespace' | 'name' | 'plural' | 'apiVersion'>): string {
  return `/environments/${namespace}/${kindPath({ plural, apiVersion })}/${name}`;
}

/** Where an environment is in the API. */
export function placeOf({ namespace, name, plural, apiVersion }: Pick<Environment, 'namespace' | 'name' | 'plural' | 'apiVersion'>) {
  return { namespace, name, kind: kindPath({ plural, apiVersion }) };
}

/** Whether an endpoint is something a browser can open. */
export function isLink(text: string): boolean {
  return /^https?:\/\/[^\s]+$/.test(text);
}
