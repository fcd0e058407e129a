import createClient from 'openapi-fetch';
import type { paths } from './schema';
import { holdsPrivateKey, PRIVATE_KEY } from '../kinds/secrets';
import { Refused, unreachable, unsent } from './problem';

/** The portal's API, typed by its OpenAPI description. */
export const api = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: (request) => globalThis.fetch(request),
  credentials: 'same-origin',
});

/** The last guard: no request contains a private key, even if a page does not check for one. */
api.use({
  async onRequest({ request }) {
    if (
      request.method !== 'GET' &&
      holdsPrivateKey((await request.clone().text()).replaceAll('\\n', '\n'))
    )
      throw new Refused(unsent(PRIVATE_KEY));
  },
});

type Listener = () => void;
const listeners = new Set<Listener>();

/** Calls the listener whenever a response reports a missing session. */
export function onSignedOut(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Notifies all listeners that the session is missing. */
export function signedOut(): void {
  listeners.forEach((listener) => listener());
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * Returns the body of a response. A failed request throws a `Refused` with the server's message.
 */
export async function answer<T>(asked: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>;
  try {
    got = await asked;
  } catch (error) {
    if (error instanceof Refused || (error instanceof DOMException && error.name === 'AbortError'))
      throw error;
    throw new Refused(unreachable());
  }
  if (got.response.ok) return got.data as T;
  if (got.response.status === 401) signedOut();
  throw Refused.of(got.error, got.response);
}
