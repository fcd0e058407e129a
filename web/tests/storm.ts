import type { EventId, Message } from '../src/api/live';
import type { Environment } from '../src/api/schema';

/** An environment. Only its name, version and uid matter. */
export const env = (name: string, resourceVersion: number, uid = 'u1'): Environment => ({
  apiVersion: 'platform.acme.io/v1alpha1',
  kind: 'StockPool',
  plural: 'stockpools',
  namespace: 'team',
  name,
  uid,
  resourceVersion: String(resourceVersion),
  labels: {},
  phase: 'Pending',
  ready: false,
  failed: false,
  message: '',
  progress: '',
  sshClosed: false,
  sshKeyless: false,
  paused: false,
  parts: [],
  status: {},
});

/** Pseudo-random numbers, the same in every run. */
export function random(seed: number): () => number {
  return () => {
    seed = (seed * 1664525 + 1013904223) % 4294967296;
    return seed / 4294967296;
  };
}

/** A portal with random changes of its environments. `truth` has the current state. */
class Portal {
  readonly truth = new Map<string, Environment>();
  private sequence = 0;
  private epoch = 0;
  constructor(private readonly next: () => number) {}

  id(): EventId {
    return { epoch: `e${this.epoch}`, sequence: this.sequence };
  }

  happen(): Message {
    const name = `pool-${Math.floor(this.next() * 300)}`;
    const known = this.truth.get(name);
    this.sequence += 1;
    if (known && this.next() < 0.2) {
      this.truth.delete(name);
      return { type: 'deleted', id: this.id(), environment: known };
    }
    const environment = env(name, this.sequence, known?.uid ?? `u${this.epoch}-${this.sequence}`);
    this.truth.set(name, environment);
    return { type: known ? 'modified' : 'added', id: this.id(), environment };
  }

  snapshot(): Message[] {
    const all = [...this.truth.values()].map((environment): Message => ({
      type: 'added',
      environment,
    }));
    return [
      { type: 'opened' },
      { type: 'snapshot', total: all.length },
      ...all,
      { type: 'synced', id: this.id() },
    ];
  }

  restart(): void {
    this.epoch += 1;
    this.sequence = 0;
  }
}

function shuffle<T>(items: T[], next: () => number): T[] {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}

/**
 * Sends ten thousand changes, some late or repeated, with interruptions. Returns the portal in its
 * final state.
 */
export function storm(next: () => number, apply: (messages: Message[]) => void): Portal {
  const portal = new Portal(next);
  apply(portal.snapshot());
  let late: Message[] = [];
  for (let round = 0; round < 100; round++) {
    const changes = Array.from({ length: 100 }, () => portal.happen());
    // Some changes of a round are repeated, all are shuffled, and some arrive in the next round.
    const all = shuffle([...late, ...changes, ...changes.filter(() => next() < 0.5)], next);
    late = all.splice(0, 20);
    if (round % 10 === 3) {
      // The connection ends during a snapshot, and the next one starts again.
      apply(portal.snapshot().slice(0, 40));
      apply(portal.snapshot().slice(0, 2));
      apply(all);
      apply(portal.snapshot());
    } else if (round % 10 === 6) {
      // Another process responds. Late messages of the previous process have no effect.
      portal.restart();
      apply(portal.snapshot());
      apply(all);
    } else {
      apply(all);
    }
  }
  apply(late);
  return portal;
}
