import { Button, NativeSelect, SegmentedControl, Skeleton, TextInput } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useDeferredValue, useMemo, type ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import { groupOf, kindPath, type KindMetadata, type OfKind } from '../kinds/metadata';
import { count, toLabel } from '../kinds/format';
import { EnvironmentCard, EnvironmentRow } from '../components/EnvironmentCard';
import { Icon } from '../components/Icon';
import { Page } from '../components/Page';
import { rowsAtom, syncedAtom, type Row } from '../state/environments';
import { filtersOf, isMine, listed, withFilter, type Filters } from '../state/filters';
import type { Key } from '../state/eventStore';
import { kindMetadataAtom, meAtom } from '../state/session';

/** The user's environments, or those that match the filters in the URL. */
export function EnvironmentsPage() {
  const rows = useAtomValue(rowsAtom);
  const synced = useAtomValue(syncedAtom);
  const me = useAtomValue(meAtom);
  const known = useAtomValue(kindMetadataAtom);
  const [search, setSearch] = useSearchParams();
  const filters = filtersOf(search);
  const deferred = useDeferredValue(search);
  // A search within the user's own environments may have matches among all.
  const elsewhere = useMemo(
    () => (synced ? listed(rows, { ...filtersOf(deferred), owner: '*' }, me, known).length : 0),
    [rows, synced, deferred, me, known],
  );
  const found = useMemo(
    () => listed(rows, filtersOf(deferred), me, known),
    [rows, deferred, me, known],
  );
  const change = (name: keyof Filters, value: string) =>
    setSearch((before) => withFilter(before, name, value), { replace: true });
  const title =
    filters.owner === ''
      ? 'My environments'
      : filters.owner === '*'
        ? 'All environments'
        : filters.owner === '-'
          ? 'Environments without an owner'
          : `Environments of ${filters.owner}`;
  return (
    <Page
      title={title}
      beside={
        <Button component={Link} href="/new" leftSection={<Icon name="plus" />}>
          New environment
        </Button>
      }
    >
      <FilterBar rows={rows} filters={filters} change={change} />
      <p role="status" className="small found">
        {synced ? count(found.length, 'environment') : 'Loading…'}
      </p>
      {!synced && <Loading />}
      {synced && found.length === 0 && (
        <Empty
          rows={rows}
          filters={filters}
          elsewhere={elsewhere}
          clear={() => setSearch({})}
          all={() => change('owner', '*')}
        />
      )}
      {found.length > 0 &&
        (filters.view === 'table' ? <Table keys={found} /> : <Cards keys={found} />)}
    </Page>
  );
}

interface BarProps {
  rows: readonly Row[];
  filters: Filters;
  change: (name: keyof Filters, value: string) => void;
}

function FilterBar({ rows, filters, change }: BarProps) {
  const me = useAtomValue(meAtom);
  const known = useAtomValue(kindMetadataAtom);
  const values = (of: (row: Row) => string, chosen: string) =>
    [...new Set([...rows.map(of), chosen])].filter((value) => value && value !== '*').sort();
  const select = (
    name: 'kind' | 'owner' | 'phase' | 'sort',
    label: string,
    data: { value: string; label: string }[],
  ) => (
    <NativeSelect
      label={label}
      data={data}
      value={filters[name]}
      onChange={(event) => change(name, event.currentTarget.value)}
    />
  );
  const kinds = values(kindPath, filters.kind).map((value) => ({
    value,
    label: titleOf(value, rows, known),
  }));
  const others = values((row) => (isMine(row, me) ? '' : row.owner), filters.owner).map(
    (value) => ({ value, label: value }),
  );
  const phases = values(({ phase }) => phase, filters.phase).map((value) => ({
    value,
    label: toLabel(value),
  }));
  return (
    <div role="search" className="filters">
      <TextInput
        type="search"
        label="Search"
        placeholder="Name, namespace, owner"
        leftSection={<Icon name="search" size={16} />}
        value={filters.q}
        onChange={(event) => change('q', event.currentTarget.value)}
      />
      {select('kind', 'Kind', [{ value: '', label: 'All kinds' }, ...kinds])}
      {select('owner', 'Owner', [
        { value: '', label: 'Mine' },
        { value: '*', label: 'Everyone’s' },
        { value: '-', label: 'No owner' },
        ...others,
      ])}
      {select('phase', 'State', [{ value: '', label: 'Any state' }, ...phases])}
      {select('sort', 'Sort by', [
        { value: '', label: 'Newest first' },
        { value: 'name', label: 'By name' },
        { value: 'state', label: 'Failing first' },
        { value: 'end', label: 'Next end first' },
      ])}
      <SegmentedControl
        aria-label="Show as"
        value={filters.view || 'cards'}
        onChange={(value) => change('view', value === 'cards' ? '' : value)}
        data={[
          { value: 'cards', label: <Shown icon="cards" as="Cards" /> },
          { value: 'table', label: <Shown icon="table" as="Table" /> },
        ]}
      />
    </div>
  );
}

/** The title of a kind, with its group if another kind has the same title. */
function titleOf(path: string, rows: readonly Row[], known: (of: OfKind) => KindMetadata): string {
  const row = rows.find((one) => kindPath(one) === path);
  if (!row) return path;
  const { title } = known(row);
  const isTwin = rows.some((one) => known(one).title === title && kindPath(one) !== path);
  return isTwin ? `${title} (${groupOf(row.apiVersion)})` : title;
}

function Shown({ icon, as }: { icon: 'cards' | 'table'; as: string }) {
  return (
    <span className="shown">
      <Icon name={icon} size={16} /> {as}
    </span>
  );
}

function Cards({ keys }: { keys: readonly { key: Key }[] }) {
  return (
    <ul className="cards" aria-label="Environments">
      {keys.map(({ key }) => (
        <EnvironmentCard key={key} of={key} />
      ))}
    </ul>
  );
}

const COLUMNS = [
  'Name',
  'Kind',
  'Namespace',
  'Owner',
  'State',
  'End and price',
  'Created',
  'Resources',
  'Address',
];

function Table({ keys }: { keys: readonly { key: Key }[] }) {
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="scroll" tabIndex={0} role="region" aria-label="Environments">
      <table>
        <thead>
          <tr>
            {COLUMNS.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {keys.map(({ key }) => (
            <EnvironmentRow key={key} of={key} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Loading() {
  return (
    <div className="cards" aria-hidden="true">
      {[0, 1, 2].map((index) => (
        <Skeleton key={index} height={232} radius="md" />
      ))}
    </div>
  );
}

interface EmptyProps {
  rows: readonly Row[];
  filters: Filters;
  /** How many environments of everyone match the filters. */
  elsewhere: number;
  clear: () => void;
  all: () => void;
}

/** Explains why the list is empty, and offers an action. */
function Empty({ rows, filters, elsewhere, clear, all }: EmptyProps) {
  const filtered = Boolean(
    filters.q || filters.kind || filters.phase || (filters.owner && filters.owner !== '*'),
  );
  if (filtered) {
    return (
      <Hint title="No matches" words="No environment matches this search and these filters.">
        {filters.owner !== '*' && elsewhere > 0 && (
          <Button onClick={all}>Show {count(elsewhere, 'match', 'matches')} of everyone</Button>
        )}
        <Button variant="default" onClick={clear}>
          Clear filters
        </Button>
      </Hint>
    );
  }
  const others = rows.length > 0 && filters.owner !== '*';
  return (
    <Hint
      title={others ? 'You have no environments yet' : 'No environments yet'}
      words="Choose what you need, preview it and follow its progress: a GPU machine, a cluster with its database, or a site with its backend."
    >
      <Button component={Link} href="/new" leftSection={<Icon name="plus" />}>
        Create your first environment
      </Button>
      {others && (
        <Button variant="default" onClick={all}>
          Show the {count(rows.length, 'environment')} of others
        </Button>
      )}
    </Hint>
  );
}

function Hint({ title, words, children }: { title: string; words: string; children: ReactNode }) {
  return (
    <div className="hint">
      <svg
        viewBox="0 0 120 60"
        width="120"
        height="60"
        aria-hidden="true"
        focusable="false"
        className="picture"
      >
        <path d="M52 8h16l26 46H26z" className="tint" />
        <path d="M60 12v8m0 8v9m0 8v9" />
      </svg>
      <h2>{title}</h2>
      <p>{words}</p>
      <div className="buttons">{children}</div>
    </div>
  );
}
