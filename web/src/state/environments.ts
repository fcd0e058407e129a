import { atom, type Atom, type PrimitiveAtom } from 'jotai';
import type { createStore } from 'jotai';
import type { Message } from '../api/live';
import type { Environment } from '../api/schema';
import { endOf } from '../kinds/lifecycle';
import { EventStore, keyOf, type Key } from './eventStore';

type Store = ReturnType<typeof createStore>;

/** The fields by which lists sort and filter. Most changes of an environment do not change them. */
export interface Row {
  key: Key;
  kind: string;
  apiVersion: string;
  plural: string;
  namespace: string;
  name: string;
  owner: string;
  ownerLabel: string;
  phase: string;
  failed: boolean;
  createdAt: string;
  /** When it ends (RFC 3339); empty without an end. */
  endsAt: string;
  /** Whether the stream reports its changes. If not, it was only read or created by this page. */
  told: boolean;
}

const atoms = new Map<Key, PrimitiveAtom<Environment | undefined>>();

/**
 * An environment's own atom. A component that reads it renders again only when this environment
 * changes.
 */
export function environmentAtom(key: Key): PrimitiveAtom<Environment | undefined> {
  const known = atoms.get(key) ?? atom<Environment | undefined>(undefined);
  atoms.set(key, known);
  return known;
}

/** A row for each environment, sorted by kind, namespace and name. */
export const rowsAtom = atom<readonly Row[]>([]);

/** Whether the list is complete: the first snapshot is complete, or a list was read. */
export const syncedAtom = atom(false);

/** All environments. It changes with every change of one, so it is for summary pages only. */
export const allAtom: Atom<readonly Environment[]> = atom((get) =>
  get(rowsAtom).flatMap(({ key }) => get(environmentAtom(key)) ?? []),
);

/** How long an accepted deletion is shown before the cluster shows it, in milliseconds. */
const BELIEF = 30_000;

/** Applies messages of the stream to the atoms. */
export class Environments {
  private readonly eventStore = new EventStore();
  private readonly rows = new Map<Key, Row>();
  /** The requested deletions that the cluster does not show yet: the time of the request by uid. */
  private readonly leaving = new Map<string, string>();

  /** The number of connections opened until now. */
  lines = 0;

  constructor(private readonly store: Store) {}

  /** Applies messages. */
  receive(messages: readonly Message[]): void {
    const changed = new Set<Key>();
    let synced = false;
    for (const message of messages) {
      this.eventStore.apply(message).forEach((key) => changed.add(key));
      synced ||= message.type === 'synced';
      if (message.type === 'opened') this.lines += 1;
    }
    this.show(changed);
    if (synced) this.store.set(syncedAtom, true);
  }

  /**
   * Applies a list that was read without the stream. `lines` is the number of connections opened
   * before that request. Returns whether the list was used.
   */
  read(all: readonly Environment[], lines: number): boolean {
    // A new connection has newer data. Before the first complete snapshot, any list is newer.
    if (lines !== this.lines && this.store.get(syncedAtom)) return false;
    this.show(this.eventStore.read(all));
    this.store.set(syncedAtom, true);
    return true;
  }

  /** Shows an environment that was just created or read, until the stream reports it. */
  offer(environment: Environment): void {
    this.show(this.eventStore.offer(environment));
  }

  /** Removes an environment that was offered and does not exist any more. */
  retract(key: Key): void {
    this.show(this.eventStore.retract(key));
  }

  /** Shows an environment as being deleted before the server responds. A rejection reverts this. */
  leave(environment: Environment): { refused: () => void; accepted: () => void } {
    const { uid } = environment;
    const key = keyOf(environment);
    this.leaving.set(uid, new Date().toISOString());
    this.show([key]);
    const back = () => {
      if (this.leaving.delete(uid)) this.show([key]);
    };
    return { refused: back, accepted: () => void setTimeout(back, BELIEF) };
  }

  private show(keys: Iterable<Key>): void {
    let moved = false;
    for (const key of keys) {
      const environment = this.shown(this.eventStore.entries.get(key));
      this.store.set(environmentAtom(key), environment);
      const row = environment && rowOf(key, environment, this.eventStore.tells(key));
      if (sameRow(this.rows.get(key), row)) continue;
      moved = true;
      if (row) this.rows.set(key, row);
      else this.rows.delete(key);
    }
    if (moved) this.store.set(rowsAtom, [...this.rows.values()].sort(byKey));
  }

  private shown(environment: Environment | undefined): Environment | undefined {
    const since = environment && this.leaving.get(environment.uid);
    if (!since || environment.deletedAt) return environment;
    // During a deletion, the progress counts deleted resources.
    const progress = environment.progress.replace(/^\d+/, '0');
    return {
      ...environment,
      phase: 'Deleting',
      deletedAt: since,
      message: 'is being deleted',
      diagnosis: undefined,
      progress,
      ready: false,
    };
  }
}

function rowOf(key: Key, environment: Environment, told: boolean): Row {
  const { kind, apiVersion, plural, namespace, name, phase, failed } = environment;
  const ownerLabel = environment.labels['owner'] ?? '';
  const owner = environment.owner ?? ownerLabel;
  return {
    key,
    kind,
    apiVersion,
    plural,
    namespace,
    name,
    owner,
    ownerLabel,
    phase,
    failed,
    createdAt: environment.createdAt ?? '',
    endsAt: endOf(environment)?.at ?? '',
    told,
  };
}

function sameRow(before: Row | undefined, after: Row | undefined): boolean {
  if (!before || !after) return before === after;
  return (Object.keys(after) as (keyof Row)[]).every((field) => before[field] === after[field]);
}

function byKey(a: Row, b: Row): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
