import { useAtomValue } from 'jotai';
import { memo } from 'react';
import { Link } from 'wouter';
import type { Environment } from '../api/schema';
import { Picture } from '../kinds/known';
import { moodOf } from '../kinds/mood';
import { isLink, pageOf } from '../kinds/paths';
import { environmentAtom } from '../state/environments';
import type { Key } from '../state/ledger';
import { useFault } from '../state/useFault';
import { useKnown } from '../state/useKnown';
import { Ago } from './Ago';
import { Copy } from './Copy';
import { End, HourlyPrice } from './End';
import { KindName } from './KindName';
import { Pill } from './Pill';
import { Progress } from './Progress';

/**
 * An environment as a card. It reads its own atom, so a change of another one leaves it as it is.
 */
export const EnvironmentCard = memo(function EnvironmentCard({ of }: { of: Key }) {
  const environment = useAtomValue(environmentAtom(of));
  return environment ? <Card environment={environment} /> : null;
});

function Card({ environment }: { environment: Environment }) {
  const { name, namespace, phase, message, progress, owner } = environment;
  const mood = moodOf(environment);
  const fault = useFault(environment);
  const { api } = useKnown(environment);
  return (
    <li className="card" data-mood={mood}>
      <div className="card-head">
        <Picture api={api} size={40} />
        <div className="grow">
          <div className="card-title">
            <h2 className="cut">
              {/* It lies over all of the card, and over the message, which may be cut: whoever points there reads it whole. */}
              <Link href={pageOf(environment)} className="whole" title={message}>
                {name}
              </Link>
            </h2>
            <Pill mood={mood} word={phase} />
          </div>
          <p className="small">
            <KindName of={environment} /> · <span className="whole-word">{namespace}</span>
          </p>
        </div>
      </div>
      <Progress text={progress} mood={mood} />
      <p className="says">{fault ? fault.cause.headline : message}</p>
      <Endpoint of={environment} />
      <p className="card-life small">
        <End of={environment} />
        <HourlyPrice of={environment} />
      </p>
      <p className="card-foot small">
        <span className="cut">{owner ?? 'No owner'}</span>
        <Ago at={environment.createdAt} />
      </p>
    </li>
  );
}

/** An environment as a row of a table. */
export const EnvironmentRow = memo(function EnvironmentRow({ of }: { of: Key }) {
  const environment = useAtomValue(environmentAtom(of));
  if (!environment) return null;
  const { name, namespace, phase, progress, owner } = environment;
  const mood = moodOf(environment);
  return (
    <tr data-mood={mood}>
      <th scope="row">
        <Link href={pageOf(environment)}>{name}</Link>
      </th>
      <td>
        <KindName of={environment} />
      </td>
      <td className="line">{namespace}</td>
      <td>
        <Pill mood={mood} word={phase} />
      </td>
      <td className="line">
        <End of={environment} />
        <div className="small">
          <HourlyPrice of={environment} />
        </div>
      </td>
      <td>
        <Progress text={progress} mood={mood} />
      </td>
      <td className="wide">
        <Endpoint of={environment} />
      </td>
      <td className="cut">{owner}</td>
      <td>
        <Ago at={environment.createdAt} />
      </td>
    </tr>
  );
});

/**
 * Where people reach it. What is ready without an address needs none; its room stays, so that cards
 * keep their height.
 */
function Endpoint({ of }: { of: Environment }) {
  const { name, endpoint, ready } = of;
  const { addressless } = useKnown(of);
  if (!endpoint)
    return <p className="endpoint small">{ready || addressless ? '' : 'No address yet'}</p>;
  return (
    <p className="endpoint">
      {isLink(endpoint) ? (
        <a href={endpoint} target="_blank" rel="noreferrer" className="code cut">
          {endpoint}
        </a>
      ) : (
        <code className="code cut" title={endpoint}>
          {endpoint}
        </code>
      )}
      <Copy text={endpoint} what={`the address of ${name}`} />
    </p>
  );
}
