import type { EventId, Message } from '../api/live';
import type { Environment } from '../api/schema';

/** What tells an environment from every other one: `Kind.group/namespace/name`. */
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
 * Everything that came down the line, in its newest state. Any message may come twice, and changes
 * may come late: each carries the
 * sequence that its line gave it, and what is older than what is known of the same environment
 * changes nothing.
 * A snapshot counts only once it is complete; until then what was known before stays.
 */
export class EventStore {
  readonly entries = new Map<Key, Environment>();
  /**
   * What of it was read or made here alone: the line has not told of it, and perhaps never will.
   */
  private readonly offered = new Set<Key>();
  private epoch = '';
  /** Everything up to here is contained in `entries`. */
  private floor = 0;
  /**
   * The newest change of each environment since; also of those that are gone, so that nothing late
   * brings them back.
   */
  private newest = new Map<Key, number>();
  private snapshot: { entries: Map<Key, Environment>; changes: Message[] } | undefined;

  /** Takes a message in; says which environments are other than before. */
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
    // Told twice, as after a read without the line: no news.
    if (type !== 'deleted' && this.tells(key) && same(this.entries.get(key), environment))
      return [];
    this.offered.delete(key);
    if (type === 'deleted') this.entries.delete(key);
    else this.entries.set(key, environment);
    return [key];
  }

  /** A complete snapshot takes the place of everything. */
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
   * Takes in everything that there is, as it was read without the line: what comes down the line
   * after it counts for more.
   */
  read(environments: readonly Environment[]): Key[] {
    return [
      ...this.exchange(
        new Map(environments.map((environment) => [keyOf(environment), environment])),
      ),
    ];
  }

  /** Takes in what was just made or read by itself, unless the line knows it. */
  offer(environment: Environment): Key[] {
    const key = keyOf(environment);
    if (this.tells(key)) return [];
    this.offered.add(key);
    this.entries.set(key, environment);
    return [key];
  }

  /** Takes back what was offered. */
  retract(key: Key): Key[] {
    return this.offered.delete(key) && this.entries.delete(key) ? [key] : [];
  }

  /** Whether the line tells of an environment. */
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
   * A heartbeat says that nothing older is on its way any more: so what is remembered of the gone
   * does not grow for ever.
   */
  private raise({ epoch, sequence }: EventId): void {
    if (epoch !== this.epoch || sequence <= this.floor) return;
    this.floor = sequence;
    for (const [key, newest] of this.newest) if (newest <= sequence) this.newest.delete(key);
  }
}

/** Whether nothing has changed: after a break most of a snapshot is what was known already. */
function same(before: Environment | undefined, after: Environment): boolean {
  if (before?.uid !== after.uid || before.resourceVersion !== after.resourceVersion) return false;
  return JSON.stringify(before) === JSON.stringify(after);
}
