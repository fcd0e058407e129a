import type { EventId, Message } from '../api/live';
import type { Environment } from '../api/schema';

/** Identifies an environment: `Kind.group/namespace/name`. */
export type Key = string;

/** The key of an environment. */
export function keyOf({
  apiVersion,
  kind,
  namespace,
  name,
}: Pick<Environment, 'apiVersion' | 'kind' | 'namespace' | 'name'>): Key {
  return `${kind}.${apiVersion.split('/')[0] ?? ''}/${namespace}/${name}`;
}

/**
 * The newest state from the messages of the stream. A message may arrive twice, and changes may
 * arrive late. Each change has a sequence number. A change that is older than the known state of
 * its environment is ignored. A snapshot applies only when it is complete. Until then, the previous
 * state stays.
 */
export class EventStore {
  readonly entries = new Map<Key, Environment>();
  /**
   * The environments that were only read or created by this page. The stream has not reported them,
   * and perhaps never will.
   */
  private readonly offered = new Set<Key>();
  private epoch = '';
  /** `entries` contains all changes up to this sequence number. */
  private floor = 0;
  /**
   * The newest change of each environment after `floor`. It includes deleted environments, so that
   * a late change does not restore them.
   */
  private newest = new Map<Key, number>();
  private snapshot: { entries: Map<Key, Environment>; changes: Message[] } | undefined;

  /** Applies a message. Returns the keys of changed environments. */
  apply(message: Message): Key[] {
    switch (message.type) {
      case 'opened':
        this.snapshot = undefined;
        return [];
      case 'snapshot':
        this.snapshot = { entries: new Map(), changes: [] };
        return [];
      case 'synced':
        return this.snapshot ? this.replace(message.id) : [];
      case 'heartbeat':
        this.raise(message.id);
        return [];
      case 'added':
      case 'modified':
      case 'deleted':
        return this.change(message);
    }
  }

  private change(message: Extract<Message, { environment: Environment }>): Key[] {
    const { type, id, environment } = message;
    const key = keyOf(environment);
    if (this.snapshot) {
      if (id) this.snapshot.changes.push(message);
      else if (type !== 'deleted') this.snapshot.entries.set(key, environment);
      return [];
    }
    if (
      !id ||
      id.epoch !== this.epoch ||
      id.sequence <= Math.max(this.floor, this.newest.get(key) ?? 0)
    )
      return [];
    this.newest.set(key, id.sequence);
    // The change was known already, for example from a list that was read.
    if (type !== 'deleted' && this.tells(key) && same(this.entries.get(key), environment))
      return [];
    this.offered.delete(key);
    if (type === 'deleted') this.entries.delete(key);
    else this.entries.set(key, environment);
    return [key];
  }

  /** Replaces all entries with a complete snapshot. */
  private replace({ epoch, sequence }: EventId): Key[] {
    const { entries, changes } = this.snapshot!;
    const changed = this.exchange(entries);
    this.snapshot = undefined;
    this.epoch = epoch;
    this.floor = sequence;
    this.newest.clear();
    for (const change of changes) this.apply(change).forEach((key) => changed.add(key));
    return [...changed];
  }

  /**
   * Replaces all entries with a list that was read. Later changes from the stream have priority.
   */
  read(environments: readonly Environment[]): Key[] {
    return [
      ...this.exchange(
        new Map(environments.map((environment) => [keyOf(environment), environment])),
      ),
    ];
  }

  /** Adds an environment that was just created or read, unless the stream has reported it. */
  offer(environment: Environment): Key[] {
    const key = keyOf(environment);
    if (this.tells(key)) return [];
    this.offered.add(key);
    this.entries.set(key, environment);
    return [key];
  }

  /** Removes an environment that was offered. */
  retract(key: Key): Key[] {
    return this.offered.delete(key) && this.entries.delete(key) ? [key] : [];
  }

  /** Whether the stream reports an environment. */
  tells(key: Key): boolean {
    return this.entries.has(key) && !this.offered.has(key);
  }

  private exchange(entries: ReadonlyMap<Key, Environment>): Set<Key> {
    const changed = new Set<Key>([...this.entries.keys()].filter((key) => !entries.has(key)));
    changed.forEach((key) => this.entries.delete(key));
    for (const [key, environment] of entries) {
      if (this.tells(key) && same(this.entries.get(key), environment)) continue;
      this.entries.set(key, environment);
      changed.add(key);
    }
    this.offered.clear();
    return changed;
  }

  /**
   * A heartbeat guarantees that no older change can arrive. This limits the memory for deleted
   * environments.
   */
  private raise({ epoch, sequence }: EventId): void {
    if (epoch !== this.epoch || sequence <= this.floor) return;
    this.floor = sequence;
    for (const [key, newest] of this.newest) if (newest <= sequence) this.newest.delete(key);
  }
}

/** Whether an environment is unchanged. After a reconnect, most of a snapshot is known already. */
function same(before: Environment | undefined, after: Environment): boolean {
  if (before?.uid !== after.uid || before.resourceVersion !== after.resourceVersion) return false;
  return JSON.stringify(before) === JSON.stringify(after);
}
