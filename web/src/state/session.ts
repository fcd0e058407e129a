import { atom } from 'jotai';
import type { Kind, Me } from '../api/schema';
import type { Line } from '../api/live';
import { metadataOf } from '../kinds/metadata';

/** The session of the user. */
export type Session =
  | { state: 'unknown' }
  /** The portal does not respond. */
  | { state: 'unreachable'; why: string }
  /** The portal responds, and forbids all actions. A retry would not change this. */
  | { state: 'refused'; error: unknown }
  | { state: 'in'; me: Me }
  /**
   * There is no session. `me` is the user of the expired session. `elsewhere` means that the user
   * signed out in another place. `told` is an error of signing in or out.
   */
  | { state: 'out'; me?: Me; elsewhere?: true; told?: Told };

/** A failed action and its error. */
export interface Told {
  title: string;
  error: unknown;
}

export const sessionAtom = atom<Session>({ state: 'unknown' });

/** The signed-in user, or the user of the expired session. */
export const meAtom = atom((get) => {
  const session = get(sessionAtom);
  return 'me' in session ? session.me : undefined;
});

/** The state of the connection to the event stream. */
export const lineAtom = atom<Line>({ state: 'connecting' });

/** The kinds that can be created, once they are known. */
export const kindsAtom = atom<readonly Kind[] | undefined>(undefined);

/** The error of the last request for the kinds. */
export const kindsErrorAtom = atom<unknown>(undefined);

/** The facts about each kind. */
export const kindMetadataAtom = atom((get) => metadataOf(get(kindsAtom) ?? []));

/** The titles of kinds that more than one group serves. */
export const twinsAtom = atom((get) => {
  const known = get(kindMetadataAtom);
  const titles = (get(kindsAtom) ?? []).map((kind) => known(kind).title);
  return new Set(titles.filter((title, index) => titles.indexOf(title) !== index));
});
