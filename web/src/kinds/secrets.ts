/**
 * Private keys, which people paste by mistake. They are found here, in the page: what holds one is
 * neither sent nor
 * kept. `api/client.ts` and `state/drafts.ts` see to that whatever a page does.
 */

/**
 * Headers of PEM, OpenSSH and PuTTY, and the first bytes of OpenSSH's and PEM's bodies, for a key
 * that was pasted in part. A certificate begins otherwise.
 */
const PRIVATE =
  /PRIVATE KEY|PuTTY-User-Key-File|Private-Lines:|b3BlbnNzaC1rZXktdjE|^\s*MI(I[A-Za-z0-9+/]{2}[AQgw]IBA|[GH][A-Za-z0-9+/]AgEA)/m;

/** What a page says about it. */
export const PRIVATE_KEY =
  'This is a private key. It has not left this page. Remove it, and paste the public key: the line in ~/.ssh/id_ed25519.pub.';

/** Whether a text, or one anywhere in a value, holds a private key. */
export function holdsPrivateKey(value: unknown): boolean {
  if (typeof value === 'string') return PRIVATE.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, one]) => holdsPrivateKey(name) || holdsPrivateKey(one));
}

/** The fields that hold one; a list counts as one field, as a key has many lines. */
export function privateKeysIn(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return holdsPrivateKey(value) ? [path] : [];
  return Object.entries(value).flatMap(([name, one]) =>
    holdsPrivateKey(name) ? [path] : privateKeysIn(one, [...path, name]),
  );
}
