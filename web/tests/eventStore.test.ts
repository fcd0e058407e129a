import { describe, expect, it } from 'vitest';
import type { Message } from '../src/api/live';
import type { Environment } from '../src/api/schema';
import { EventStore, keyOf } from '../src/state/eventStore';
import { env, random, storm } from './storm';

const sorted = (entries: Iterable<Environment>) =>
  [...entries].sort((a, b) => a.name.localeCompare(b.name));

describe('the event store', () => {
  it.each([1, 2, 3, 4, 5])(
    'equals the cluster after 10,000 late or repeated changes with interruptions (seed %i)',
    (seed) => {
      const eventStore = new EventStore();
      const portal = storm(random(seed), (messages) =>
        messages.forEach((message) => eventStore.apply(message)),
      );
      expect(sorted(eventStore.entries.values())).toEqual(sorted(portal.truth.values()));
      expect(portal.truth.size).toBeGreaterThan(100);
    },
  );

  it('shows the known state until a snapshot is complete, and drops an incomplete one', () => {
    const eventStore = new EventStore();
    const id = (sequence: number) => ({ epoch: 'e', sequence });
    const old = env('old', 1);
    [
      { type: 'snapshot', total: 1 },
      { type: 'added', environment: old },
      { type: 'synced', id: id(1) },
    ].forEach((m) => eventStore.apply(m as Message));
    eventStore.apply({ type: 'snapshot', total: 2 });
    eventStore.apply({ type: 'added', environment: env('new', 2) });
    expect([...eventStore.entries.keys()]).toEqual([keyOf(old)]);
    eventStore.apply({ type: 'opened' });
    // The next connection resumes after 1. The missed changes have ids, without a snapshot.
    eventStore.apply({ type: 'modified', id: id(2), environment: env('old', 5) });
    expect(eventStore.apply({ type: 'synced', id: id(2) })).toEqual([]);
    expect([...eventStore.entries.values()]).toEqual([env('old', 5)]);
  });

  it('does not bring back a deleted environment', () => {
    const eventStore = new EventStore();
    const id = (sequence: number) => ({ epoch: 'e', sequence });
    eventStore.apply({ type: 'snapshot', total: 0 });
    eventStore.apply({ type: 'synced', id: id(0) });
    eventStore.apply({ type: 'added', id: id(1), environment: env('a', 1) });
    eventStore.apply({ type: 'deleted', id: id(3), environment: env('a', 2) });
    expect(eventStore.apply({ type: 'modified', id: id(2), environment: env('a', 2) })).toEqual([]);
    eventStore.apply({ type: 'heartbeat', id: id(3) });
    expect(eventStore.apply({ type: 'modified', id: id(2), environment: env('a', 2) })).toEqual([]);
    expect(eventStore.entries.size).toBe(0);
  });

  it('reports no change for the same state, except the first event of a local creation', () => {
    const eventStore = new EventStore();
    const id = (sequence: number) => ({ epoch: 'e', sequence });
    eventStore.apply({ type: 'snapshot', total: 0 });
    eventStore.apply({ type: 'synced', id: id(0) });
    const key = keyOf(env('a', 1));
    expect(eventStore.offer(env('a', 1))).toEqual([key]);
    expect(eventStore.apply({ type: 'added', id: id(1), environment: env('a', 1) })).toEqual([key]);
    expect(eventStore.apply({ type: 'modified', id: id(2), environment: env('a', 1) })).toEqual([]);
    expect(eventStore.apply({ type: 'modified', id: id(3), environment: env('a', 2) })).toEqual([
      key,
    ]);
    // A change older than the repeated one is still ignored.
    expect(eventStore.apply({ type: 'modified', id: id(5), environment: env('a', 2) })).toEqual([]);
    expect(eventStore.apply({ type: 'modified', id: id(4), environment: env('a', 1) })).toEqual([]);
    expect(eventStore.entries.get(key)).toEqual(env('a', 2));
  });

  it('accepts a list during a break, and then the missed events', () => {
    const eventStore = new EventStore();
    const id = (sequence: number) => ({ epoch: 'e', sequence });
    const known = [env('stays', 1), env('goes', 1)].map((environment): Message => ({
      type: 'added',
      environment,
    }));
    [{ type: 'snapshot', total: 2 }, ...known, { type: 'synced', id: id(1) }].forEach((message) =>
      eventStore.apply(message as Message),
    );
    expect(eventStore.read([env('stays', 5), env('new', 4)]).sort()).toEqual(
      ['goes', 'new', 'stays'].map((name) => keyOf(env(name, 1))).sort(),
    );
    // The stream resumes after 1, and sends all changes in order.
    const missed: Message[] = [
      { type: 'modified', id: id(2), environment: env('stays', 3) },
      { type: 'added', id: id(3), environment: env('new', 4) },
      { type: 'modified', id: id(4), environment: env('stays', 5) },
      { type: 'deleted', id: id(5), environment: env('goes', 1) },
    ];
    [{ type: 'opened' } as const, ...missed, { type: 'synced', id: id(5) } as const].forEach(
      (message) => eventStore.apply(message),
    );
    expect(sorted(eventStore.entries.values())).toEqual([env('new', 4), env('stays', 5)]);
  });

  it('reports only differences', () => {
    const eventStore = new EventStore();
    const snapshot = (...all: Environment[]): Message[] => [
      { type: 'snapshot', total: all.length },
      ...all.map((environment): Message => ({ type: 'added', environment })),
      { type: 'synced', id: { epoch: 'e', sequence: 9 } },
    ];
    snapshot(env('a', 1), env('b', 1)).forEach((message) => eventStore.apply(message));
    expect(
      snapshot(env('a', 1), env('b', 2)).flatMap((message) => eventStore.apply(message)),
    ).toEqual([keyOf(env('b', 2))]);
  });
});
