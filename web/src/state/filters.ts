import type { Me } from '../api/schema';
import { kindPath, type KindMetadata, type OfKind } from '../kinds/metadata';
import { compare } from '../kinds/format';
import type { Row } from './environments';

/** The filters and the order of the list. They are in the URL, so that users can share it. */
export interface Filters {
  q: string;
  /** The kind in the form of URL paths: two groups may have a kind of the same name. */
  kind: string;
  /** Empty: the user's own; `*`: of all users; `-`: without an owner; otherwise an owner. */
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

/** The same search with another value. A default value is left out. */
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

/** Whether an environment belongs to this user. */
export function isMine(
  { owner, ownerLabel }: Pick<Row, 'owner' | 'ownerLabel'>,
  me: Pick<Me, 'login' | 'owner' | 'username'> | undefined,
): boolean {
  // `paved apply` does not know the portal's OpenID provider: it writes the username.
  return Boolean(me) && (ownerLabel === me!.owner || owner === me!.login || owner === me!.username);
}

/** The rows that match the filters, sorted. */
export function listed(
  rows: readonly Row[],
  { q, kind, owner, phase, sort }: Filters,
  me: Me | undefined,
  known: (of: OfKind) => KindMetadata,
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
  // Environments that need attention are first.
  state: (a, b) =>
    Number(b.failed) - Number(a.failed) ||
    Number(a.phase === 'Ready') - Number(b.phase === 'Ready') ||
    newest(a, b),
};
