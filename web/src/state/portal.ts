import { createContext, startTransition, useContext } from 'react';
import type { createStore } from 'jotai';
import { answer, api, onSignedOut } from '../api/client';
import { backoff } from '../api/backoff';
import { follow, type Following } from '../api/live';
import { Refused, words } from '../api/problem';
import type { Environment, Kind, Page } from '../api/schema';
import { kindPath } from '../kinds/metadata';
import { Environments } from './environments';
import { discardOtherDrafts } from './drafts';
import { tellAtom } from './notices';
import { kindsAtom, kindsErrorAtom, lineAtom, meAtom, sessionAtom, type Told } from './session';

type Store = ReturnType<typeof createStore>;

/** What the pages hang on: who is signed in, the kinds, and the environments as they change. */
export class Portal {
  readonly environments: Environments;
  private line: Following | undefined;
  private reading: AbortController | undefined;
  private learning: ReturnType<typeof setTimeout> | undefined;

  /** `refused` is why somebody who was to be signed in by now is not. */
  constructor(
    private readonly store: Store,
    private readonly refused?: Refused,
  ) {
    this.environments = new Environments(store);
  }

  /** Begins; the answer ends it. */
  begin(): () => void {
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const off = onSignedOut(() => this.lose('expired'));
    // Also where nobody looks: no line stands there that would tell.
    const told = new BroadcastChannel(SIGNED_OUT);
    told.onmessage = () => this.lose('signed-out');
    window.addEventListener('pageshow', renew);
    const ask = async (attempt: number) => {
      try {
        await this.recognise(() => ended);
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
      told.close();
      window.removeEventListener('pageshow', renew);
      this.hangUp();
    };
  }

  private async recognise(isOver: () => boolean): Promise<void> {
    const asked = answer(api.GET('/api/v1/me'));
    // They are taken in once it is known for whom.
    const kinds = kindsThere();
    const me = await asked;
    if (isOver()) return;
    discardOtherDrafts(me.owner);
    startTransition(() => this.store.set(sessionAtom, { state: 'in', me }));
    if (this.refused)
      this.store.set(tellAtom, {
        tone: 'bad',
        title: 'Sign-in failed. You are still signed in as before.',
        detail: words(this.refused),
      });
    this.follow();
    void this.learn(kinds);
  }

  /** Follows what changes, from now on. */
  private follow(): void {
    this.hangUp();
    let again = false;
    this.line = follow({
      // Drawn piece by piece, however much it is.
      onMessages: (messages) => startTransition(() => this.environments.receive(messages)),
      onLine: (line) => {
        this.store.set(lineAtom, line);
        if (line.state === 'signed-out') this.lose(line.why);
        // A line that is asked for at once goes on where it stopped: a list would only be in its
        // way.
        if (line.state === 'down' && line.retryAt > Date.now()) void this.read();
        // What is still being read is older than what the line has told by now.
        if (line.state === 'live') this.reading?.abort();
        // With every line after the first: what can be made may be something else than before, and
        // so may be who is signed in.
        if (line.state === 'live' && again) {
          void this.learn();
          void this.identify();
        }
        again ||= line.state === 'live';
      },
    });
  }

  /**
   * Another page may have signed in as somebody else since: nothing of one person's stays before
   * another.
   */
  private async identify(): Promise<void> {
    const me = await answer(api.GET('/api/v1/me')).catch(() => undefined);
    const before = this.store.get(meAtom);
    if (!me || !before || me.owner === before.owner) return;
    this.hangUp();
    this.store.set(sessionAtom, { state: 'unknown' });
    window.location.reload();
  }

  private hangUp(): void {
    this.line?.stop();
    this.line = undefined;
    this.reading?.abort();
  }

  /**
   * Reads what there is, page by page, while no changes come: whoever reads it knows by the banner
   * how old it is.
   */
  private async read(): Promise<void> {
    const { lines } = this.environments;
    this.reading?.abort();
    const { signal } = (this.reading = new AbortController());
    try {
      const all: Environment[] = [];
      let next: string | undefined;
      do {
        const page: Page = await answer(
          api.GET('/api/v1/environments', {
            params: { query: { limit: 500, continue: next } },
            signal,
          }),
        );
        all.push(...page.items);
        next = page.continue ?? undefined;
      } while (next !== undefined);
      // Another process may have answered, which was behind the one whose line goes on: that one
      // tells everything anew.
      if (!signal.aborted && this.environments.read(all, lines)) this.line?.forget();
    } catch {
      // The banner says already that the portal does not answer; the next attempt reads again.
    }
  }

  /**
   * Asks for the kinds, until there are some, and each is described: a portal that has just begun
   * knows none yet. Why they do not come is kept for whoever waits for them.
   */
  private async learn(asked = kindsThere(), attempt = 0): Promise<void> {
    const { kinds: told, error } = await asked;
    const known = this.store.get(kindsAtom);
    // What a kind was described by is not forgotten where the portal does not know it just now.
    const kinds = told?.map((kind) =>
      kind.schema
        ? kind
        : { ...kind, schema: known?.find((one) => kindPath(one) === kindPath(kind))?.schema },
    );
    // Said once, and not with every attempt.
    this.store.set(kindsErrorAtom, (before: unknown) =>
      error && before && words(error) === words(before) ? before : error,
    );
    // The same again is no news for forms that are being filled in.
    if (kinds && JSON.stringify(kinds) !== JSON.stringify(known))
      startTransition(() => this.store.set(kindsAtom, kinds));
    const undescribed = told?.some(({ schema }) => !schema) && attempt < ATTEMPTS;
    clearTimeout(this.learning);
    if ((!kinds?.length || undescribed) && this.line)
      this.learning = setTimeout(() => void this.learn(undefined, attempt + 1), backoff(attempt));
  }

  private lose(why: 'signed-out' | 'expired'): void {
    if (why === 'signed-out') {
      // Whoever has signed out here hears of it as well, and knows it better.
      if (this.store.get(meAtom)) this.leave({ elsewhere: true });
      return;
    }
    this.hangUp();
    const told = this.refused && { title: 'Could not sign you in', error: this.refused };
    this.store.set(sessionAtom, (session) => {
      if (session.state === 'out') return session;
      return session.state === 'in' ? { state: 'out', me: session.me } : { state: 'out', told };
    });
  }

  /** Signs out, everywhere. */
  async signOut(): Promise<void> {
    // The portal tells every page of this person that the session has ended, before it answers:
    // here that is no news.
    this.hangUp();
    try {
      await answer(api.POST('/auth/sign-out'));
    } catch (refused) {
      if (await isOut()) {
        tellSignedOut();
        this.leave({
          told: { title: 'You are signed out here, but perhaps not everywhere', error: refused },
        });
        return;
      }
      if (this.store.get(sessionAtom).state === 'in') this.follow();
      throw refused;
    }
    this.leave();
    tellSignedOut();
    window.location.assign('/');
  }

  /**
   * Takes away what was shown of whoever has signed out: browsers keep a page as it was left, for
   * whoever goes back to it.
   */
  private leave(says: { told?: Told; elsewhere?: true } = {}): void {
    this.hangUp();
    this.store.set(sessionAtom, { state: 'out', ...says });
    discardOtherDrafts();
  }
}

/**
 * How often kinds that are there are asked for again because something describes them not: perhaps
 * nothing ever does.
 */
const ATTEMPTS = 4;

/** The kinds, or why the portal does not say them. */
function kindsThere(): Promise<{ kinds?: Kind[]; error?: unknown }> {
  return answer(api.GET('/api/v1/kinds')).then(
    (kinds) => ({ kinds }),
    (error: unknown) => ({ error }),
  );
}

/** Where the pages of one browser tell each other that somebody has signed out. */
const SIGNED_OUT = 'paved-signed-out';

function tellSignedOut(): void {
  const channel = new BroadcastChannel(SIGNED_OUT);
  channel.postMessage(undefined);
  channel.close();
}

/**
 * Whether the session has ended, although signing out was refused: the portal takes it from this
 * browser even where it cannot tell the others.
 */
async function isOut(): Promise<boolean> {
  const asked = await api.GET('/api/v1/me').catch(() => undefined);
  return asked?.response.status === 401;
}

/**
 * A page that a browser had kept as it was left is loaded anew: somebody else may be signed in by
 * now, or nobody.
 */
function renew({ persisted }: PageTransitionEvent): void {
  if (persisted) window.location.reload();
}

const PortalContext = createContext<Portal | undefined>(undefined);

export const PortalProvider = PortalContext.Provider;

/** The portal around. */
export function usePortal(): Portal {
  const portal = useContext(PortalContext);
  if (!portal) throw new Error('usePortal needs a PortalProvider');
  return portal;
}
