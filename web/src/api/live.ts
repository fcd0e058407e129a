import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { EventSourceMessage } from 'eventsource-parser';
import { backoff } from './backoff';
import { Refused } from './problem';
import type { Environment } from './schema';

/**
 * Where an event stands among all of one line, whichever replicas it went on at:
 * `epoch-sequence-known`.
 */
export interface EventId {
  epoch: string;
  sequence: number;
}

/** What comes down the line. */
export type Message =
  /** A line stands; of what came down the last one nothing is pending any more. */
  | { type: 'opened' }
  /** Everything that was known is void; so many follow. */
  | { type: 'snapshot'; total: number }
  /** A change, or one of a snapshot: those have no id. */
  | { type: 'added' | 'modified' | 'deleted'; id?: EventId; environment: Environment }
  | { type: 'synced' | 'heartbeat'; id: EventId };

/** How the line stands. */
export type Line =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'down'; retryAt: number; why: string }
  | { state: 'offline' }
  | { state: 'signed-out'; why: 'signed-out' | 'expired' };

interface Options {
  onMessages: (messages: Message[]) => void;
  onLine: (line: Line) => void;
  url?: string;
  random?: () => number;
}

/** Without a word for this long the line counts as dead: heartbeats come every 15 s. */
const SILENCE = 40_000;

/**
 * A line that begins anew and has not told everything by then is slow or held up on its way, as by
 * a proxy that keeps it to itself: whoever waits for it had better read.
 */
const LATE = 3_000;

/**
 * A line that has told everything and still stands after so long is as good as new: what ends it
 * then has nothing to do with what ended the last.
 */
const PROVEN = 10_000;

/**
 * A page that is hidden for this long lets its line go: by HTTP/1.1 browsers open six connections
 * to a host, for all their tabs together.
 */
const HIDDEN = 10_000;

/** A line that is followed. */
export interface Following {
  stop: () => void;
  /** Begins the next line anew: what is known by now does not come from the last one alone. */
  forget: () => void;
}

/**
 * Follows the portal's stream of changes for ever: comes back by itself, with backoff, and goes on
 * where it stopped. It reads by fetch
 * rather than by EventSource, which tells neither a 401 from a broken line nor waits any longer the
 * more often it fails.
 */
export function follow({
  onMessages,
  onLine,
  url = '/api/v1/watch',
  random = Math.random,
}: Options): Following {
  const stopped = new AbortController();
  let last: string | undefined;
  let attempt = 0;
  let wake: (() => void) | undefined;
  let current: AbortController | undefined;
  let hiding: ReturnType<typeof setTimeout> | undefined;
  /** Whether the line was let go because nobody looks. */
  let hidden = false;
  const isHidden = () => hidden;

  const say = (line: Line) => {
    if (!stopped.signal.aborted) onLine(line);
  };

  /**
   * Reads one line to its end; says how long to wait before the next, or that there is to be none.
   */
  const read = async (): Promise<{ wait: number; why: string } | undefined> => {
    const line = (current = new AbortController());
    let silence = setTimeout(() => line.abort(), SILENCE);
    const from = last;
    // Whoever goes on from somewhere has something to show, and a list would be in the way of what
    // changes.
    const late = from
      ? undefined
      : setTimeout(
          () =>
            say({
              state: 'down',
              retryAt: Date.now() + SILENCE - LATE,
              why: 'The connection is slow or blocked.',
            }),
          LATE,
        );
    let proven: ReturnType<typeof setTimeout> | undefined;
    const batch = new Batch(onMessages);
    try {
      const headers: Record<string, string> = { accept: 'text/event-stream' };
      if (from) headers['last-event-id'] = from;
      const response = await fetch(url, {
        headers,
        signal: line.signal,
        cache: 'no-store',
        credentials: 'same-origin',
      });
      if (response.status === 401) {
        say({ state: 'signed-out', why: 'expired' });
        return undefined;
      }
      if (!response.ok || !response.body)
        return { wait: backoff(attempt++, random), why: await Refused.in(response) };
      // What this line goes on from was forgotten while it was asked for.
      if (from !== last) return { wait: 0, why: 'The connection restarts.' };
      batch.push({ type: 'opened' });
      // At once: whoever reads without the line is to know that it stands again.
      batch.flush();
      const events = response.body
        .pipeThrough(new TextDecoderStream())
        .pipeThrough(new EventSourceParserStream());
      const reader = events.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(() => line.abort(), SILENCE);
        const reason = resetReason(value);
        if (reason === 'signed-out' || reason === 'expired') {
          say({ state: 'signed-out', why: reason });
          return undefined;
        }
        if (reason) {
          return {
            wait: backoff(attempt++, random),
            why: REASONS[reason] ?? 'The portal reset the connection.',
          };
        }
        const message = parse(value);
        if (!message) continue;
        batch.push(message);
        if (message.type === 'synced') {
          clearTimeout(late);
          proven ??= setTimeout(() => (attempt = 0), PROVEN);
          say({ state: 'live' });
        }
        if (value.id) last = value.id;
      }
      return { wait: backoff(attempt++, random), why: 'The connection was closed.' };
    } catch {
      return { wait: backoff(attempt++, random), why: 'The connection was lost.' };
    } finally {
      clearTimeout(silence);
      clearTimeout(late);
      clearTimeout(proven);
      batch.flush();
      line.abort();
    }
  };

  /** Waits so long, or until it is woken. */
  const rest = (wait?: number) =>
    new Promise<void>((resolve) => {
      const timer = wait === undefined ? undefined : setTimeout(resolve, wait);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const run = async () => {
    say({ state: 'connecting' });
    while (!stopped.signal.aborted) {
      if (isHidden()) {
        await rest();
        if (!isHidden())
          say({ state: 'down', retryAt: Date.now(), why: 'This page was hidden for a while.' });
        continue;
      }
      const end = await read();
      if (!end) return;
      if (isHidden()) continue;
      if (!navigator.onLine) {
        say({ state: 'offline' });
        await rest(60_000);
      } else {
        say({ state: 'down', retryAt: Date.now() + end.wait, why: end.why });
        await rest(end.wait);
      }
    }
  };

  // Whoever comes back online, or looks again, does not wait for the backoff's end.
  const now = () => wake?.();
  const online = () => {
    attempt = 0;
    now();
  };
  const offline = () => current?.abort();
  /** Also one that is held up: whoever asks for another does not wait for its end. */
  const retry = () => {
    current?.abort();
    online();
  };
  const look = () => {
    clearTimeout(hiding);
    hidden &&= document.visibilityState === 'hidden';
    if (document.visibilityState === 'hidden') hiding = setTimeout(letGo, HIDDEN);
    else now();
  };
  const letGo = () => {
    hidden = true;
    current?.abort();
  };
  const off = { signal: stopped.signal };
  window.addEventListener('online', online, off);
  window.addEventListener('offline', offline, off);
  window.addEventListener('paved:retry', retry, off);
  document.addEventListener('visibilitychange', look, off);
  look();
  void run();
  return {
    stop: () => {
      stopped.abort();
      clearTimeout(hiding);
      current?.abort();
      wake?.();
    },
    forget: () => {
      last = undefined;
    },
  };
}

/** Comes back at once rather than at the end of the backoff. */
export function retryNow(): void {
  window.dispatchEvent(new Event('paved:retry'));
}

const REASONS: Record<string, string> = {
  slow: 'This page could not keep up with the updates.',
  'access-changed': 'Your permissions have changed.',
  unavailable: 'The Kubernetes API does not respond.',
  shutdown: 'The portal is restarting.',
};

/** Gathers messages, so that a storm of them is drawn once and not a thousand times. */
class Batch {
  private messages: Message[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly deliver: (messages: Message[]) => void) {}

  push(message: Message): void {
    this.messages.push(message);
    this.timer ??= setTimeout(() => this.flush(), 32);
  }

  flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const messages = this.messages;
    this.messages = [];
    if (messages.length > 0) this.deliver(messages);
  }
}

function resetReason(event: EventSourceMessage): string | undefined {
  if (event.event !== 'reset') return undefined;
  const { reason } = data(event) as { reason?: unknown };
  return typeof reason === 'string' ? reason : 'reset';
}

/** Reads an event; what this page does not know is passed over. */
export function parse(event: EventSourceMessage): Message | undefined {
  const id = eventId(event.id);
  switch (event.event) {
    case 'snapshot':
      return { type: 'snapshot', total: Number((data(event) as { total?: unknown }).total ?? 0) };
    case 'added':
    case 'modified':
    case 'deleted': {
      const environment = data(event) as Environment;
      return environment.name ? { type: event.event, id, environment } : undefined;
    }
    case 'synced':
    case 'heartbeat':
      return id && { type: event.event, id };
    default:
      return undefined;
  }
}

function data(event: EventSourceMessage): object {
  try {
    const value: unknown = JSON.parse(event.data);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Reads `epoch-sequence-scope`. */
export function eventId(text: string | undefined): EventId | undefined {
  const [epoch, sequence] = text?.split('-', 3) ?? [];
  const number = Number(sequence);
  return epoch && sequence && Number.isSafeInteger(number)
    ? { epoch, sequence: number }
    : undefined;
}
