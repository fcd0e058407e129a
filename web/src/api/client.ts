import createClient from 'openapi-fetch';
import type { paths } from './schema';
import { holdsPrivateKey, PRIVATE_KEY } from '../kinds/secrets';
import { Refused, unreachable, unsent } from './problem';

/** The portal's API, typed by its own description. */
export const api = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: (request) => globalThis.fetch(request),
  credentials: 'same-origin',
});

/** The last guard: whatever a page does, a private key is not sent. */
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

/** Calls back whenever an answer says that nobody is signed in. */
export function onSignedOut(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Tells everybody who listens that nobody is signed in any more. */
export function signedOut(): void {
  listeners.forEach((listener) => listener());
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * What an operation answers; whatever goes wrong is thrown as a `Refused` with the server's own
 * words.
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
