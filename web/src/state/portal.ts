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

/** The state that all pages share: the session, the kinds and the environments. */
export class Portal {
  readonly environments: Environments;
  private line: Following | undefined;
  private reading: AbortController | undefined;
  private learning: ReturnType<typeof setTimeout> | undefined;

  /** `refused` is the reason why a sign-in failed. */
  constructor(
    private readonly store: Store,
    private readonly refused?: Refused,
  ) {
    this.environments = new Environments(store);
  }

  /** Starts the session. The returned function ends it. */
  begin(): () => void {
    let ended = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const off = onSignedOut(() => this.lose('expired'));
    // Also for hidden pages, which have no connection that could report it.
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
    // The kinds are applied after the user is known.
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

  /** Follows changes from now on. */
  private follow(): void {
    this.hangUp();
    let again = false;
    this.line = follow({
      // Rendered in a transition, because there may be many messages.
      onMessages: (messages) => startTransition(() => this.environments.receive(messages)),
      onLine: (line) => {
        this.store.set(lineAtom, line);
        if (line.state === 'signed-out') this.lose(line.why);
        // A reconnect without delay resumes where the stream stopped. A list would only delay it.
        if (line.state === 'down' && line.retryAt > Date.now()) void this.read();
        // A list that is still being read is older than the stream's state.
        if (line.state === 'live') this.reading?.abort();
        // After each reconnect, the available kinds or the signed-in user may be different.
        if (line.state === 'live' && again) {
          void this.learn();
          void this.identify();
        }
        again ||= line.state === 'live';
      },
    });
  }

  /**
   * Reloads the page if another user signed in meanwhile, for example in another tab. No user may
   * see data of another.
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
   * Reads all environments, page by page, while no changes arrive. A banner shows how old they are.
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
      // Another replica may have answered, with older data than the one with the stream. A new
      // snapshot corrects this.
      if (!signal.aborted && this.environments.read(all, lines)) this.line?.forget();
    } catch {
      // The banner already reports the error. The next attempt reads again.
    }
  }

  /**
   * Requests the kinds until there are some and each has a schema. A portal that has just started
   * has none yet. The error is stored for pages that wait for the kinds.
   */
  private async learn(asked = kindsThere(), attempt = 0): Promise<void> {
    const { kinds: told, error } = await asked;
    const known = this.store.get(kindsAtom);
    // A known schema stays if the portal cannot return it at the moment.
    const kinds = told?.map((kind) =>
      kind.schema
        ? kind
        : { ...kind, schema: known?.find((one) => kindPath(one) === kindPath(kind))?.schema },
    );
    // An equal error is reported once, not with every attempt.
    this.store.set(kindsErrorAtom, (before: unknown) =>
      error && before && words(error) === words(before) ? before : error,
    );
    // Equal kinds must not reset forms that the user is editing.
    if (kinds && JSON.stringify(kinds) !== JSON.stringify(known))
      startTransition(() => this.store.set(kindsAtom, kinds));
    const undescribed = told?.some(({ schema }) => !schema) && attempt < ATTEMPTS;
    clearTimeout(this.learning);
    if ((!kinds?.length || undescribed) && this.line)
      this.learning = setTimeout(() => void this.learn(undefined, attempt + 1), backoff(attempt));
  }

  private lose(why: 'signed-out' | 'expired'): void {
    if (why === 'signed-out') {
      // The page in which the user signed out also receives this message, and has handled it.
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

  /** Signs out, in all pages of this user. */
  async signOut(): Promise<void> {
    // Before it responds, the portal ends the streams of all pages of this user. This page does not
    // need that message.
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
   * Removes the data of the user who signed out. Browsers keep a page in memory, and show it again
   * when the next user goes back.
   */
  private leave(says: { told?: Told; elsewhere?: true } = {}): void {
    this.hangUp();
    this.store.set(sessionAtom, { state: 'out', ...says });
    discardOtherDrafts();
  }
}

/** The number of attempts to get missing schemas. Some kinds may never have one. */
const ATTEMPTS = 4;

/** The kinds, or the error of the request for them. */
function kindsThere(): Promise<{ kinds?: Kind[]; error?: unknown }> {
  return answer(api.GET('/api/v1/kinds')).then(
    (kinds) => ({ kinds }),
    (error: unknown) => ({ error }),
  );
}

/** The channel on which the pages of one browser report a sign-out. */
const SIGNED_OUT = 'paved-signed-out';

function tellSignedOut(): void {
  const channel = new BroadcastChannel(SIGNED_OUT);
  channel.postMessage(undefined);
  channel.close();
}

/**
 * Whether the session has ended although sign-out failed. The portal deletes the cookie even if it
 * cannot notify its other replicas.
 */
async function isOut(): Promise<boolean> {
  const asked = await api.GET('/api/v1/me').catch(() => undefined);
  return asked?.response.status === 401;
}

/**
 * Reloads a page that the browser kept in memory. The session may have changed or ended meanwhile.
 */
function renew({ persisted }: PageTransitionEvent): void {
  if (persisted) window.location.reload();
}

const PortalContext = createContext<Portal | undefined>(undefined);

export const PortalProvider = PortalContext.Provider;

/** The portal of the surrounding provider. */
export function usePortal(): Portal {
  const portal = useContext(PortalContext);
  if (!portal) throw new Error('usePortal needs a PortalProvider');
  return portal;
}
