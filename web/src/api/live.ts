import { EventSourceParserStream } from 'eventsource-parser/stream';
import type { EventSourceMessage } from 'eventsource-parser';
import { backoff } from './backoff';
import { Refused } from './problem';
import type { Environment } from './schema';

/**
 * The position of an event in the event stream, which is the same at all replicas. Its text is
 * `epoch-sequence-known`.
 */
export interface EventId {
  epoch: string;
  sequence: number;
}

/** A message of the event stream. */
export type Message =
  /** A connection is open. No message of the previous connection can still arrive. */
  | { type: 'opened' }
  /** All known environments are void. `total` environments follow. */
  | { type: 'snapshot'; total: number }
  /** A change, or an environment of a snapshot. Environments of a snapshot have no id. */
  | { type: 'added' | 'modified' | 'deleted'; id?: EventId; environment: Environment }
  | { type: 'synced' | 'heartbeat'; id: EventId };

/** The state of the connection to the event stream. */
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

/** A connection without any event for this long counts as lost: heartbeats arrive every 15 s. */
const SILENCE = 40_000;

/**
 * A new stream without a complete snapshot after this time is slow or delayed, for example by a
 * proxy that buffers it. The page then reads a list instead.
 */
const LATE = 3_000;

/**
 * A connection that stays open this long after its snapshot counts as successful. This resets the
 * backoff.
 */
const PROVEN = 10_000;

/**
 * A page that is hidden for this long closes its connection. With HTTP/1.1, browsers open six
 * connections to a host, for all tabs together.
 */
const HIDDEN = 10_000;

/** A stream that is being followed. */
export interface Following {
  stop: () => void;
  /** Requests a new snapshot with the next connection. The caller has data from another source. */
  forget: () => void;
}

/**
 * Follows the portal's stream of changes permanently. It reconnects automatically, with backoff,
 * and resumes where it stopped. It uses fetch because EventSource cannot tell a 401 from a lost
 * connection, and does not increase its delay after repeated errors.
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
  /** Whether the connection was closed because the page is hidden. */
  let hidden = false;
  const isHidden = () => hidden;

  const say = (line: Line) => {
    if (!stopped.signal.aborted) onLine(line);
  };

  /**
   * Reads one connection until it ends. Returns the delay before the next connection, or
   * `undefined` if there must not be one.
   */
  const read = async (): Promise<{ wait: number; why: string } | undefined> => {
    const line = (current = new AbortController());
    let silence = setTimeout(() => line.abort(), SILENCE);
    const from = last;
    // A stream that resumes already has data on the page. A list would only delay the changes.
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
      // `forget` was called during this request, so the stream must restart.
      if (from !== last) return { wait: 0, why: 'The connection restarts.' };
      batch.push({ type: 'opened' });
      // Without a delay: a list that is being read must see that the connection is open again.
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

  /** Waits for the given time, or until `wake` is called. */
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

  // When the browser comes online or the page becomes visible, the backoff ends immediately.
  const now = () => wake?.();
  const online = () => {
    attempt = 0;
    now();
  };
  const offline = () => current?.abort();
  /** Also closes a connection that is stuck, so that the user does not wait for its timeout. */
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

/** Reconnects immediately instead of after the backoff. */
export function retryNow(): void {
  window.dispatchEvent(new Event('paved:retry'));
}

const REASONS: Record<string, string> = {
  slow: 'This page could not keep up with the updates.',
  'access-changed': 'Your permissions have changed.',
  unavailable: 'The Kubernetes API does not respond.',
  shutdown: 'The portal is restarting.',
};

/** Collects messages, so that a thousand changes cause one render. */
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

/** Parses an event. Returns `undefined` for unknown events. */
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

/** Parses `epoch-sequence-known`. The last part is opaque to the page. */
export function eventId(text: string | undefined): EventId | undefined {
  const [epoch, sequence] = text?.split('-', 3) ?? [];
  const number = Number(sequence);
  return epoch && sequence && Number.isSafeInteger(number)
    ? { epoch, sequence: number }
    : undefined;
}
