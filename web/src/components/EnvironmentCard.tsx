import { useAtomValue } from 'jotai';
import { memo } from 'react';
import { Link } from 'wouter';
import type { Environment } from '../api/schema';
import { Picture } from '../kinds/metadata';
import { toneOf } from '../kinds/tone';
import { isLink, pageOf } from '../kinds/paths';
import { environmentAtom } from '../state/environments';
import type { Key } from '../state/eventStore';
import { useFault } from '../state/useFault';
import { useKindMetadata } from '../state/useKindMetadata';
import { Ago } from './Ago';
import { Copy } from './Copy';
import { End, HourlyPrice } from './End';
import { KindName } from './KindName';
import { Pill } from './Pill';
import { Progress } from './Progress';

/**
 * An environment as a card. It reads its own atom, so changes of other environments do not render
 * it again.
 */
export const EnvironmentCard = memo(function EnvironmentCard({ of }: { of: Key }) {
  const environment = useAtomValue(environmentAtom(of));
  return environment ? <Card environment={environment} /> : null;
});

function Card({ environment }: { environment: Environment }) {
  const { name, namespace, phase, message, progress, owner } = environment;
  const tone = toneOf(environment);
  const fault = useFault(environment);
  const { api } = useKindMetadata(environment);
  return (
    <li className="card" data-tone={tone}>
      <div className="card-head">
        <Picture api={api} size={40} />
        <div className="grow">
          <div className="card-title">
            <h2 className="cut">
              {/* The link covers the card, including the message, which may be cut. Its tooltip
                  shows the whole message. */}
              <Link href={pageOf(environment)} className="whole" title={message}>
                {name}
              </Link>
            </h2>
            <Pill tone={tone} word={phase} />
          </div>
          <p className="small">
            <KindName of={environment} /> · <span className="whole-word">{namespace}</span>
          </p>
        </div>
      </div>
      <Progress text={progress} tone={tone} />
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
  const tone = toneOf(environment);
  return (
    <tr data-tone={tone}>
      <th scope="row">
        <Link href={pageOf(environment)}>{name}</Link>
      </th>
      <td>
        <KindName of={environment} />
      </td>
      <td className="line">{namespace}</td>
      <td className="cut">{owner}</td>
      <td>
        <Pill tone={tone} word={phase} />
      </td>
      <td className="line">
        <End of={environment} />
        <div className="small">
          <HourlyPrice of={environment} />
        </div>
      </td>
      <td>
        <Ago at={environment.createdAt} />
      </td>
      <td>
        <Progress text={progress} tone={tone} />
      </td>
      <td className="wide">
        <Endpoint of={environment} />
      </td>
    </tr>
  );
});

/**
 * The environment's address. A ready environment without an address needs none. The empty element
 * stays, so that all cards have the same height.
 */
function Endpoint({ of }: { of: Environment }) {
  const { name, endpoint, ready, power } = of;
  const { addressless } = useKindMetadata(of);
  if (!endpoint) {
    const none = power === 'Stopped' ? 'No address while stopped' : 'No address yet';
    const isNeeded = !addressless && (power === 'Stopped' || !ready);
    return <p className="endpoint small">{isNeeded ? none : ''}</p>;
  }
  return (
    <p className="endpoint">
      {ready && isLink(endpoint) ? (
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
