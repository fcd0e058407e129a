import { atom } from 'jotai';
import type { Kind, Me } from '../api/schema';
import type { Line } from '../api/live';
import { metadataOf } from '../kinds/metadata';

/** Who sits before the page. */
export type Session =
  | { state: 'unknown' }
  /** The portal does not answer. */
  | { state: 'unreachable'; why: string }
  /** The portal answers, and lets this person do nothing; asking again changes nothing. */
  | { state: 'refused'; error: unknown }
  | { state: 'in'; me: Me }
  /**
   * Nobody is signed in; `me` is whose session has run out, `elsewhere` that they have signed out
   * in another place, and `told` what did not work of signing in or out.
   */
  | { state: 'out'; me?: Me; elsewhere?: true; told?: Told };

/** What did not work, and why. */
export interface Told {
  title: string;
  error: unknown;
}

export const sessionAtom = atom<Session>({ state: 'unknown' });

/** Whoever is signed in, or was until a moment ago. */
export const meAtom = atom((get) => {
  const session = get(sessionAtom);
  return 'me' in session ? session.me : undefined;
});

/** How the stream of changes stands. */
export const lineAtom = atom<Line>({ state: 'connecting' });

/** The kinds that can be made here, once they are known. */
export const kindsAtom = atom<readonly Kind[] | undefined>(undefined);

/** Why the last attempt to learn them did not work. */
export const kindsErrorAtom = atom<unknown>(undefined);

/** What is known of each kind. */
export const kindMetadataAtom = atom((get) => metadataOf(get(kindsAtom) ?? []));

/** What people call those kinds that more than one group serves. */
export const twinsAtom = atom((get) => {
  const known = get(kindMetadataAtom);
  const titles = (get(kindsAtom) ?? []).map((kind) => known(kind).title);
  return new Set(titles.filter((title, index) => titles.indexOf(title) !== index));
});
