import type { ReactNode } from 'react';
import type { Environment } from '../api/schema';
import { stopReason } from '../kinds/lifecycle';
import { amountOf, dollars } from '../kinds/prices';
import { exactly } from '../kinds/format';
import { useKindMetadata } from '../state/useKindMetadata';
import { Until } from './End';

/** Power, end and price of an environment. */
export function LifecycleFacts({ environment }: { environment: Environment }) {
  const { power, lifecycle, price, cannotStop } = environment;
  const { whenStopped } = useKindMetadata(environment);
  const stopped = amountOf(price?.stoppedHourlyUSD);
  const runs = amountOf(price?.hourlyUSD);
  const perHour = (amount: number | undefined) =>
    amount === undefined ? 'Unknown' : `${dollars(amount)} per hour`;
  return (
    <dl className="facts">
      {power && <Fact name="Power">{power}</Fact>}
      {lifecycle && (
        <Fact name="Ends">
          {lifecycle.expiresAt ? <Time at={lifecycle.expiresAt} over="has passed" /> : 'Never'}
        </Fact>
      )}
      {lifecycle?.deletesAt && (
        <Fact name="Deleted">
          <Time at={lifecycle.deletesAt} over="is due" />
        </Fact>
      )}
      {lifecycle?.maximum && <Fact name="Longest extension">{lifecycle.maximum}</Fact>}
      {lifecycle?.stoppedAt && (
        <Fact name="Stopped">
          {exactly(Date.parse(lifecycle.stoppedAt))}, {stopReason(environment)}
        </Fact>
      )}
      <Fact name="Price while running">{perHour(runs)}</Fact>
      {!cannotStop && <Fact name="Price while stopped">{perHour(stopped)}</Fact>}
      {price?.asOf && <Fact name="Prices of">{price.asOf}</Fact>}
      {lifecycle && (
        <Fact name="A stop">
          {cannotStop ? `Not available: ${cannotStop}.` : whenStopped || 'Keeps the data.'}
        </Fact>
      )}
    </dl>
  );
}

function Time({ at, over }: { at: string; over: string }) {
  return (
    <>
      {exactly(Date.parse(at))} (<Until at={at} over={over} />)
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span className="fact">{children}</span>
      </dd>
    </div>
  );
}
