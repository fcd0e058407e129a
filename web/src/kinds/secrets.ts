/**
 * Private keys that users paste by mistake. The page finds them before it sends or stores data:
 * `api/client.ts` and `state/drafts.ts` check this for all pages.
 */

/**
 * Headers of PEM, OpenSSH and PuTTY keys. The first bytes of the bodies of OpenSSH and PEM keys
 * detect a key without its header. A certificate starts with other bytes.
 */
const PRIVATE =
  /PRIVATE KEY|PuTTY-User-Key-File|Private-Lines:|b3BlbnNzaC1rZXktdjE|^\s*MI(I[A-Za-z0-9+/]{2}[AQgw]IBA|[GH][A-Za-z0-9+/]AgEA)/m;

/** The message about a private key. */
export const PRIVATE_KEY =
  'This is a private key. It has not left this page. Remove it, and paste the public key: the line in ~/.ssh/id_ed25519.pub.';

/** Whether a text, or a text anywhere in a value, contains a private key. */
export function holdsPrivateKey(value: unknown): boolean {
  if (typeof value === 'string') return PRIVATE.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, one]) => holdsPrivateKey(name) || holdsPrivateKey(one));
}

/**
 * The paths of fields with a private key. A list counts as one field, because a key has many lines.
 */
export function privateKeysIn(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return holdsPrivateKey(value) ? [path] : [];
  return Object.entries(value).flatMap(([name, one]) =>
    holdsPrivateKey(name) ? [path] : privateKeysIn(one, [...path, name]),
  );
}
