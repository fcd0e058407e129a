import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { backoff } from '../src/api/backoff';
import {
  eventId,
  follow,
  retryNow,
  type Following,
  type Line,
  type Message,
} from '../src/api/live';
import { KNOWN, World } from './world';

describe('backoff', () => {
  it('doubles to half a minute, with jitter over its upper half', () => {
    const bounds = [0, 1, 2, 3, 4, 5, 6, 50].map((attempt) => [
      backoff(attempt, () => 0),
      backoff(attempt, () => 1),
    ]);
    expect(bounds).toEqual([
      [500, 1000],
      [1000, 2000],
      [2000, 4000],
      [4000, 8000],
      [8000, 16000],
      [15000, 30000],
      [15000, 30000],
      [15000, 30000],
    ]);
  });
});

it('reads ids as the portal writes them', () => {
  expect(eventId('4f2a-17-99ab')).toEqual({ epoch: '4f2a', sequence: 17 });
  for (const strange of [undefined, '', 'a', 'a-', 'a-b-c', '-3-c'])
    expect(eventId(strange)).toBeUndefined();
});

describe('the line', () => {
  let world: World;
  let line: Following | undefined;
  let lines: Line[];
  let messages: Message[];
  let asked: { at: number; last: string | null }[];

  beforeEach(() => {
    vi.useFakeTimers();
    world = new World();
    world.add('stock-pool', { name: 'a', namespace: 'team' });
    [lines, messages, asked] = [[], [], []];
    vi.stubGlobal('fetch', (url: string, { headers, signal }: RequestInit) => {
      const request = new Request(new URL(url, 'http://portal.test'), { headers });
      asked.push({ at: Date.now(), last: request.headers.get('last-event-id') });
      signal?.addEventListener('abort', () => world.reset());
      return world.fetch(request);
    });
    line = follow({
      onMessages: (some) => messages.push(...some),
      onLine: (line) => lines.push(line),
      random: () => 1,
    });
  });
  afterEach(() => {
    line?.stop();
    vi.useRealTimers();
  });

  const pass = (milliseconds: number) => vi.advanceTimersByTimeAsync(milliseconds);
  const types = () => messages.splice(0).map(({ type }) => type);

  it('begins with a whole list, and resumes later', async () => {
    await pass(100);
    expect(types()).toEqual(['opened', 'snapshot', 'added', 'synced']);
    expect(lines.at(-1)).toEqual({ state: 'live' });
    const view = world.add('stock-pool', { name: 'b', namespace: 'team' });
    await pass(100);
    world.reset();
    await pass(10);
    expect(lines.at(-1)).toMatchObject({ state: 'down', why: 'The connection was closed.' });
    world.change(view, { phase: 'Failed' });
    await pass(1100);
    expect(types()).toEqual(['added', 'opened', 'modified', 'synced']);
    expect(asked.map(({ last }) => last)).toEqual([null, `e1-2-${KNOWN}`]);
    expect(lines.at(-1)).toEqual({ state: 'live' });
  });

  it('starts again after its state was dropped, also during a request', async () => {
    await pass(100);
    world.reset();
    await pass(10);
    line?.forget();
    await pass(1100);
    expect(asked.map(({ last }) => last)).toEqual([null, null]);
    expect(types()).toEqual([
      'opened',
      'snapshot',
      'added',
      'synced',
      'opened',
      'snapshot',
      'added',
      'synced',
    ]);
    let release = () => {};
    world.held = new Promise((resolve) => (release = resolve));
    world.reset();
    await pass(2100);
    expect(asked.at(-1)).toMatchObject({ last: `e1-1-${KNOWN}` });
    line?.forget();
    world.held = undefined;
    release();
    await pass(1100);
    expect(asked.at(-1)).toMatchObject({ last: null });
    expect(types()).toEqual(['opened', 'snapshot', 'added', 'synced']);
  });

  it('reports a delayed first connection, and its success', async () => {
    line?.stop();
    world.buffering = true;
    [lines, asked] = [[], []];
    line = follow({
      onMessages: (some) => messages.push(...some),
      onLine: (line) => lines.push(line),
      random: () => 1,
    });
    await pass(2_900);
    expect(lines).toEqual([{ state: 'connecting' }]);
    await pass(200);
    expect(lines.at(-1)).toMatchObject({
      state: 'down',
      why: 'The connection is slow or blocked.',
      retryAt: asked[0]!.at + 40_000,
    });
    // A manual retry does not wait for the end of the blocked connection.
    retryNow();
    await pass(1_100);
    expect(asked).toHaveLength(2);
    expect(types().at(-1)).toBe('opened');
    world.flush();
    await pass(100);
    expect(types()).toEqual(['snapshot', 'added', 'synced']);
    await pass(10_000);
    expect(lines.at(-1)).toEqual({ state: 'live' });
  });

  it('is not reported as delayed when it resumes', async () => {
    await pass(100);
    world.buffering = true;
    world.reset();
    await pass(10_000);
    expect(asked).toHaveLength(2);
    expect(lines.at(-1)).toMatchObject({ state: 'down', why: 'The connection was closed.' });
  });

  it('increases its delay, and resets it after a lasting connection', async () => {
    await pass(100);
    world.streaming = false;
    world.reset();
    asked.length = 0;
    await pass(40_000);
    const waits = asked.slice(1).map(({ at }, index) => at - asked[index]!.at);
    expect(waits).toEqual([2000, 4000, 8000, 16000]);
    world.streaming = true;
    await pass(60_000);
    expect(lines.at(-1)).toEqual({ state: 'live' });
    world.reset();
    await pass(1100);
    expect(lines.at(-1)).toEqual({ state: 'live' });
  });

  it('does not wait after a request or when the device is online again', async () => {
    await pass(100);
    world.streaming = false;
    world.reset();
    await pass(20_000);
    world.streaming = true;
    for (const call of [retryNow, () => window.dispatchEvent(new Event('online'))]) {
      call();
      await pass(100);
      expect(lines.at(-1)).toEqual({ state: 'live' });
      world.streaming = false;
      world.reset();
      await pass(5_000);
      expect(lines.at(-1)).toMatchObject({ state: 'down' });
      world.streaming = true;
    }
  });

  it('reports an offline device, and retries when it is online', async () => {
    await pass(100);
    const online = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    window.dispatchEvent(new Event('offline'));
    await pass(100);
    expect(lines.at(-1)).toEqual({ state: 'offline' });
    online.mockReturnValue(true);
    window.dispatchEvent(new Event('online'));
    await pass(100);
    expect(lines.at(-1)).toEqual({ state: 'live' });
  });

  it('treats silence as a lost connection', async () => {
    await pass(30_000);
    world.beat();
    await pass(30_000);
    expect(asked).toHaveLength(1);
    await pass(12_000);
    expect(asked).toHaveLength(2);
    expect(lines.at(-1)).toEqual({ state: 'live' });
  });

  it('closes the stream of a hidden page, and resumes it later', async () => {
    await pass(100);
    const state = vi.spyOn(document, 'visibilityState', 'get');
    const look = (how: DocumentVisibilityState) => {
      state.mockReturnValue(how);
      document.dispatchEvent(new Event('visibilitychange'));
    };
    // A page that is visible again soon keeps its connection.
    look('hidden');
    await pass(9_000);
    look('visible');
    await pass(9_000);
    expect([world.open, asked.length]).toEqual([1, 1]);
    look('hidden');
    await pass(11_000);
    expect(world.open).toBe(0);
    world.add('stock-pool', { name: 'b', namespace: 'team' });
    await pass(300_000);
    expect(asked).toHaveLength(1);
    expect(lines.at(-1)).toEqual({ state: 'live' });
    look('visible');
    expect(lines.at(-1)).toEqual({ state: 'live' });
    await pass(100);
    expect(asked.map(({ last }) => last)).toEqual([null, `e1-1-${KNOWN}`]);
    expect(types()).toEqual(['opened', 'snapshot', 'added', 'synced', 'opened', 'added', 'synced']);
    expect(lines.slice(-2)).toMatchObject([{ state: 'down' }, { state: 'live' }]);
    state.mockRestore();
  });

  it.each([
    ['slow', 1000],
    ['access-changed', 1000],
    ['shutdown', 1000],
    ['unavailable', 1000],
  ])('reconnects after a reset: %s', async (reason, wait) => {
    await pass(100);
    world.reset(reason);
    await pass(wait - 10);
    expect(asked).toHaveLength(1);
    await pass(20);
    expect(asked).toHaveLength(2);
  });

  it('waits longer after each reset, until a stream lasts', async () => {
    const waits = [];
    for (const stood of [0, 0, 0, 15_000]) {
      await pass(100 + stood);
      const { length } = asked;
      world.reset('slow');
      const since = Date.now();
      while (asked.length === length) await pass(50);
      waits.push(Math.floor((asked.at(-1)!.at - since) / 1000));
    }
    expect(waits).toEqual([1, 2, 4, 1]);
  });

  it.each(['signed-out', 'expired'])('ends finally after a sign-out: %s', async (reason) => {
    await pass(100);
    world.reset(reason);
    await pass(120_000);
    expect(lines.at(-1)).toEqual({ state: 'signed-out', why: reason });
    expect(asked).toHaveLength(1);
  });

  it('ends permanently on a 401', async () => {
    await pass(100);
    world.me = undefined;
    world.reset();
    await pass(120_000);
    expect(lines.at(-1)).toEqual({ state: 'signed-out', why: 'expired' });
    expect(asked).toHaveLength(2);
  });
});
