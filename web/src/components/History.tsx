import { useMemo } from 'react';
import type { Environment } from '../api/schema';
import { historyOf } from '../kinds/history';
import { Ago } from './Ago';

/** The events of an environment, the newest first. */
export function History({ environment }: { environment: Environment }) {
  const happenings = useMemo(() => historyOf(environment), [environment]);
  return (
    <ol className="history">
      {happenings.map(({ at, tone, title }) => (
        <li key={`${at} ${title}`} data-tone={tone}>
          <span>{title}</span>
          <span className="small">
            <Ago at={at} />
          </span>
        </li>
      ))}
    </ol>
  );
}
