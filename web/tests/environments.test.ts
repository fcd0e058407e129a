import { createStore } from 'jotai';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { allAtom, environmentAtom, Environments, rowsAtom } from '../src/state/environments';
import { keyOf } from '../src/state/eventStore';
import { env, random, storm } from './storm';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('the atoms', () => {
  it.each([1, 2, 3])(
    'equal the cluster after 10,000 changes, with deletions, rejections and creations (seed %i)',
    (seed) => {
      const store = createStore();
      const environments = new Environments(store);
      const next = random(seed + 100);
      const shown = () => store.get(allAtom);
      const asked: { refused: () => void; accepted: () => void }[] = [];
      const portal = storm(random(seed), (messages) => {
        environments.receive(messages);
        const all = shown();
        const some = all[Math.floor(next() * all.length)];
        if (some) {
          const leaving = environments.leave(some);
          expect(store.get(environmentAtom(keyOf(some)))?.deletedAt).toBeTruthy();
          asked.push(leaving);
        }
        // A list that was requested before the stream reconnected.
        expect(environments.read([], environments.lines - 1)).toBe(false);
        if (next() < 0.3) environments.offer(env(`pool-${Math.floor(next() * 300)}`, 0, 'stale'));
        while (asked.length > 3) {
          const { refused, accepted } = asked.shift()!;
          if (next() < 0.5) refused();
          else accepted();
        }
      });
      asked.forEach(({ refused }) => refused());
      // An accepted deletion is shown for a while, although the cluster never shows it.
      vi.advanceTimersByTime(60_000);
      // An offered environment that does not exist is removed by the next snapshot.
      environments.receive(portal.snapshot());
      const truth = [...portal.truth.values()];
      const keys = truth.map(keyOf).sort();
      expect(store.get(rowsAtom).map(({ key }) => key)).toEqual(keys);
      expect(store.get(rowsAtom).every(({ told }) => told)).toBe(true);
      expect(shown()).toEqual(truth.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)));
    },
  );

  it('accept any list before the first sync, and no older list after it', () => {
    const store = createStore();
    const environments = new Environments(store);
    const names = () => store.get(rowsAtom).map(({ name }) => name);
    environments.receive([{ type: 'opened' }, { type: 'snapshot', total: 1 }]);
    expect(environments.read([env('listed', 1)], 0)).toBe(true);
    expect(names()).toEqual(['listed']);
    environments.receive([
      { type: 'added', environment: env('told', 2) },
      { type: 'synced', id: { epoch: 'e', sequence: 2 } },
    ]);
    expect(names()).toEqual(['told']);
    expect(environments.read([env('listed', 1)], 0)).toBe(false);
    expect(names()).toEqual(['told']);
  });
});
