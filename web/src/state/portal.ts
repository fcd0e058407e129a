import { createContext, useContext } from 'react';
import type { createStore } from 'jotai';
import { answer, api, onSignedOut } from '../api/client';
import { backoff } from '../api/backoff';
import { follow, type Following } from '../api/live';
import { Refused, words } from '../api/problem';
import type { Environment, Page } from '../api/schema';
import { Environments } from './environments';
import { forgetOthers } from './kept';
import { kindsAtom, lineAtom, sessionAtom } from './session';

type Store = ReturnType<typeof createStore>;

/** What the pages hang on: who is signed in, the kinds, and the environments as they change. */
export class Portal {
  readonly environments: Environments;
  private line: Following | undefined;
  private reading: AbortController | undefined;
  private learning: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {
    this.environments = new Environments(store);
  }

  /** Begins; the answer ends it. */
  begin(): () => void {
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const off = onSignedOut(() => this.lose('expired'));
    const ask = async (attempt: number) => {
      try {
        await this.recognise();
      } catch (error) {
        if (ended || (error instanceof Refused && error.status === 401)) return;
        if (error instanceof Refused && error.status === 403) {
          this.store.set(sessionAtom, { state: 'refused', error });
          return;
        }
        this.store.set(sessionAtom, { state: 'unreachable', why: words(error) });
        timer = setTimeout(() => void ask(attempt + 1), backoff(attempt));
      }
    };
    void ask(0);
    return () => {
      ended = true;
      clearTimeout(timer);
      clearTimeout(this.learning);
      off();
      this.hangUp();
    };
  }

  private async recognise(): Promise<void> {
    const me = await answer(api.GET('/api/v1/me'));
    forgetOthers(me.owner);
    this.store.set(sessionAtom, { state: 'in', me });
    this.follow();
    void this.learn();
  }

  /** Follows what changes, from now on. */
  private follow(): void {
    this.hangUp();
    let again = false;
    this.line = follow({
      onMessages: (messages) => this.environments.receive(messages),
      onLine: (line) => {
        this.store.set(lineAtom, line);
        if (line.state === 'signed-out') this.lose(line.why);
        if (line.state === 'down') void this.read();
        // With every line after the first: what can be made may be something else than before.
        if (line.state === 'live' && again) void this.learn();
        again ||= line.state === 'live';
      },
    });
  }

  private hangUp(): void {
    this.line?.stop();
    this.line = undefined;
    this.reading?.abort();
  }

  /** Reads what there is, page by page, while no changes come: whoever reads it knows by the banner how old it is. */
  private async read(): Promise<void> {
    const { lines } = this.environments;
    this.reading?.abort();
    const { signal } = (this.reading = new AbortController());
    try {
      const all: Environment[] = [];
      let next: string | undefined;
      do {
        const page: Page = await answer(api.GET('/api/v1/environments', { params: { query: { limit: 500, continue: next } }, signal }));
        all.push(...page.items);
        next = page.continue ?? undefined;
      } while (next !== undefined);
      // Another process may have answered, which was behind the one whose line goes on: that one tells everything anew.
      if (!signal.aborted && this.environments.read(all, lines)) this.line?.forget();
    } catch {
      // The banner says already that the portal does not answer; the next attempt reads again.
    }
  }

  /** Asks for the kinds, until there are some: a portal that has just begun knows none yet. */
  private async learn(attempt = 0): Promise<void> {
    if (attempt === 0) clearTimeout(this.learning);
    const kinds = await answer(api.GET('/api/v1/kinds')).catch(() => undefined);
    const known = this.store.get(kindsAtom);
    // The same again is no news for forms that are being filled in.
    if (kinds && JSON.stringify(kinds) !== JSON.stringify(known)) this.store.set(kindsAtom, kinds);
    if (!kinds?.length && this.line) this.learning = setTimeout(() => void this.learn(attempt + 1), backoff(attempt));
  }

  private lose(why: 'signed-out' | 'expired'): void {
    this.hangUp();
    this.store.set(sessionAtom, (session) => {
      if (session.state === 'out') return session;
      return session.state === 'in' ? { state: 'out', me: session.me, why } : { state: 'out' };
    });
  }

  /** Signs out, everywhere. */
  async signOut(): Promise<void> {
    // The portal tells every page of this person that the session has ended, before it answers: here that is no news.
    this.hangUp();
    try {
      await answer(api.POST('/auth/sign-out'));
    } catch (refused) {
      if (this.store.get(sessionAtom).state === 'in') this.follow();
      throw refused;
    }
    forgetOthers();
    window.location.assign('/');
  }
}

const PortalContext = createContext<Portal | undefined>(undefined);

export const PortalProvider = PortalContext.Provider;

/** The portal around. */
export function usePortal(): Portal {
  const portal = useContext(PortalContext);
  if (!portal) throw new Error('usePortal needs a PortalProvider');
  return portal;
}
