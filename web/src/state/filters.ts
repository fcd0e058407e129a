import type { Me } from '../api/schema';
import { kindPath, type Known, type OfKind } from '../kinds/known';
import { compare } from '../kinds/words';
import type { Row } from './environments';

/**
 * Which environments are listed, and how; it stands in the URL, so that it can be sent to somebody.
 */
export interface Filters {
  q: string;
  /** As it stands in paths: two groups may serve one kind. */
  kind: string;
  /** Empty: mine; `*`: everybody's; `-`: those without an owner; else an owner. */
  owner: string;
  phase: string;
  sort: string;
  view: string;
}

export function filtersOf(search: URLSearchParams): Filters {
  const text = (name: string) => search.get(name) ?? '';
  return {
    q: text('q'),
    kind: text('kind'),
    owner: text('owner'),
    phase: text('phase'),
    sort: text('sort'),
    view: text('view'),
  };
}

/** The same search with another value; what is as usual is left out. */
export function withFilter(
  search: URLSearchParams,
  name: keyof Filters,
  value: string,
): URLSearchParams {
  const next = new URLSearchParams(search);
  if (value) next.set(name, value);
  else next.delete(name);
  return next;
}

/** Whether an environment is this person's. */
export function isMine(
  { owner, ownerLabel }: Pick<Row, 'owner' | 'ownerLabel'>,
  me: Pick<Me, 'login' | 'owner' | 'username'> | undefined,
): boolean {
  // `paved apply` does not know the portal's OpenID provider: it writes the username.
  return Boolean(me) && (ownerLabel === me!.owner || owner === me!.login || owner === me!.username);
}

/** The rows that fit, in order. */
export function listed(
  rows: readonly Row[],
  { q, kind, owner, phase, sort }: Filters,
  me: Me | undefined,
  known: (of: OfKind) => Known,
): Row[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row: Row) => {
    const text =
      `${row.name} ${row.namespace} ${row.kind} ${known(row).title} ${row.owner}`.toLowerCase();
    const whose =
      owner === '*' || (owner === '-' ? !row.owner : owner ? row.owner === owner : isMine(row, me));
    return (
      whose &&
      (!kind || kindPath(row) === kind) &&
      (!phase || row.phase === phase) &&
      words.every((word) => text.includes(word))
    );
  };
  return rows.filter(fits).sort(ORDERS[sort] ?? ORDERS['newest']);
}

type Order = (a: Row, b: Row) => number;
const byName: Order = (a, b) => compare(a.name, b.name) || compare(a.key, b.key);
const newest: Order = (a, b) => compare(b.createdAt, a.createdAt) || byName(a, b);
/** Environments without an end come last. */
const endOrder: Order = (a, b) =>
  Number(a.endsAt === '') - Number(b.endsAt === '') || compare(a.endsAt, b.endsAt) || byName(a, b);
const ORDERS: Record<string, Order> = {
  newest,
  name: byName,
  end: endOrder,
  // What needs somebody comes first.
  state: (a, b) =>
    Number(b.failed) - Number(a.failed) ||
    Number(a.phase === 'Ready') - Number(b.phase === 'Ready') ||
    newest(a, b),
};
