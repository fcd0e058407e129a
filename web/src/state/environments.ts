import { atom, type Atom, type PrimitiveAtom } from 'jotai';
import type { createStore } from 'jotai';
import type { Message } from '../api/live';
import type { Environment } from '../api/schema';
import { endOf } from '../kinds/lifecycle';
import { Ledger, keyOf, type Key } from './ledger';

type Store = ReturnType<typeof createStore>;

/**
 * What lists sort and filter by. It changes seldom: most changes of an environment leave lists as
 * they are.
 */
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
  /** Whether changes of it are told; else it was only read, or made. */
  told: boolean;
}

const atoms = new Map<Key, PrimitiveAtom<Environment | undefined>>();

/**
 * An environment's own atom: whoever reads it is drawn again when this one changes, and for no
 * other.
 */
export function environmentAtom(key: Key): PrimitiveAtom<Environment | undefined> {
  const known = atoms.get(key) ?? atom<Environment | undefined>(undefined);
  atoms.set(key, known);
  return known;
}

/** A row for each environment, sorted by kind, namespace and name. */
export const rowsAtom = atom<readonly Row[]>([]);

/** Whether it is known what there is: a first snapshot is complete, or was read. */
export const syncedAtom = atom(false);

/** Every environment; drawn again with every change, so for pages that sum up everything. */
export const allAtom: Atom<readonly Environment[]> = atom((get) =>
  get(rowsAtom).flatMap(({ key }) => get(environmentAtom(key)) ?? []),
);

/** How long an accepted deletion is believed before the cluster shows it, in milliseconds. */
const BELIEF = 30_000;

/** Brings what comes down the line into the atoms. */
export class Environments {
  private readonly ledger = new Ledger();
  private readonly rows = new Map<Key, Row>();
  /** Whose deletion was asked for and is not seen yet, by uid. */
  private readonly leaving = new Map<string, string>();

  /** How many lines were opened until now. */
  lines = 0;

  constructor(private readonly store: Store) {}

  /** Takes messages in. */
  receive(messages: readonly Message[]): void {
    const changed = new Set<Key>();
    let synced = false;
    for (const message of messages) {
      this.ledger.apply(message).forEach((key) => changed.add(key));
      synced ||= message.type === 'synced';
      if (message.type === 'opened') this.lines += 1;
    }
    this.show(changed);
    if (synced) this.store.set(syncedAtom, true);
  }

  /**
   * Takes in everything that there is, read while the line is down; `lines` were opened when it was
   * asked for. Says whether it did.
   */
  read(all: readonly Environment[], lines: number): boolean {
    // A line that stands again knows better; until the first has told everything, whatever there is
    // is news.
    if (lines !== this.lines && this.store.get(syncedAtom)) return false;
    this.show(this.ledger.read(all));
    this.store.set(syncedAtom, true);
    return true;
  }

  /** Shows at once what was just made or read, until the line knows it better. */
  offer(environment: Environment): void {
    this.show(this.ledger.offer(environment));
  }

  /** Takes back what was offered and is not there any more. */
  retract(key: Key): void {
    this.show(this.ledger.retract(key));
  }

  /** Shows an environment as going before the server has answered; the answer takes that back. */
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
      const environment = this.shown(this.ledger.entries.get(key));
      this.store.set(environmentAtom(key), environment);
      const row = environment && rowOf(key, environment, this.ledger.tells(key));
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
    // While it goes, progress counts what is gone.
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
