import { SegmentedControl } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useMemo, useState } from 'react';
import { answer, api } from '../api/client';
import type { Environment } from '../api/schema';
import {
  amountOf,
  costsBy,
  dollars,
  monthWords,
  stoppedSumOf,
  sumOf,
  sumWords,
  type Cost,
} from '../kinds/prices';
import { count } from '../kinds/format';
import { kindMetadataAtom } from '../state/session';
import { useRequest } from '../state/useRequest';

const GROUPS = [
  { value: 'owner', label: 'By owner' },
  { value: 'namespace', label: 'By namespace' },
  { value: 'kind', label: 'By kind' },
] as const;
type Group = (typeof GROUPS)[number]['value'];

/** The cost of all environments by the hour, and the remaining cost of the stopped ones. */
export function Costs({ all }: { all: readonly Environment[] }) {
  const known = useAtomValue(kindMetadataAtom);
  const [group, setGroup] = useState<Group>('owner');
  const total = useMemo(() => sumOf(all), [all]);
  const stopped = useMemo(() => stoppedSumOf(all), [all]);
  const costs = useMemo(() => {
    const names: Record<Group, (of: Environment) => string> = {
      owner: ({ owner }) => owner ?? 'No owner',
      namespace: ({ namespace }) => namespace,
      kind: (of) => known(of).title,
    };
    return costsBy(all, names[group]);
  }, [all, group, known]);
  return (
    <section aria-labelledby="costs">
      <h2 id="costs">Estimated cost</h2>
      <dl className="sums">
        <Sum name="all environments, per hour" words={sumWords(total)} />
        <Sum name="all environments, per month at this rate" words={monthWords(total)} />
        <Sum name="stopped environments, per hour" words={sumWords(stopped)} />
        <Sum name="environments without a price" words={String(total.unknown)} />
      </dl>
      {total.notCreated > 0 && (
        <p className="small">
          {count(total.notCreated, 'environment')} could not be created, and{' '}
          {total.notCreated === 1 ? 'is' : 'are'} not in the sums.
        </p>
      )}
      <SegmentedControl
        className="groups"
        aria-label="Group costs"
        value={group}
        onChange={(value) => setGroup(value)}
        data={[...GROUPS]}
      />
      <CostTable group={group} costs={costs} />
    </section>
  );
}

function Sum({ name, words }: { name: string; words: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{words}</dd>
    </div>
  );
}

const TITLES: Record<Group, string> = { owner: 'Owner', namespace: 'Namespace', kind: 'Kind' };

const COLUMNS = ['Environments', 'Per hour', 'Per month', 'Of that, stopped', 'Without a price'];

/** The budgets of namespaces by the hour, in US dollars. */
type Budgets = Readonly<Record<string, string>>;

function isOver({ name, amount }: Cost, budgets: Budgets): boolean {
  const budget = amountOf(budgets[name]);
  return budget !== undefined && amount > budget;
}

/** The budget of a namespace, and how much of it is used. */
function budgetWords({ name, amount }: Cost, budgets: Budgets): string {
  const budget = amountOf(budgets[name]);
  if (budget === undefined) return 'None';
  const used = budget === 0 ? '' : ` (${Math.round((100 * amount) / budget)} % used)`;
  return `${dollars(budget)}${used}`;
}

function CostTable({ group, costs }: { group: Group; costs: readonly Cost[] }) {
  const { data } = useRequest('budgets', () => answer(api.GET('/api/v1/budgets')));
  const isShown = group === 'namespace' && Object.keys(data?.hourlyUSD ?? {}).length > 0;
  const budgets = isShown ? data?.hourlyUSD : undefined;
  const titles = budgets ? [...COLUMNS, 'Budget per hour'] : COLUMNS;
  return (
    // A region that scrolls must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="scroll" tabIndex={0} role="region" aria-label="Table of costs">
      <table>
        <thead>
          <tr>
            <th scope="col">{TITLES[group]}</th>
            {titles.map((title) => (
              <th key={title} scope="col" className="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {costs.map((cost) => (
            <tr key={cost.name}>
              <th scope="row">{cost.name}</th>
              <td className="number">{cost.environments}</td>
              <td className="number">{sumWords(cost)}</td>
              <td className="number">{monthWords(cost)}</td>
              <td className="number">{sumWords(cost.stopped)}</td>
              <td className="number">{cost.unknown}</td>
              {budgets && (
                <td className="number" data-tone={isOver(cost, budgets) ? 'bad' : undefined}>
                  {budgetWords(cost, budgets)}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
