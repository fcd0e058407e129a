import type { ReactNode } from 'react';
import type { Environment } from '../api/schema';
import { endOf, hasBanner, isOff, stopReason } from '../kinds/lifecycle';
import { hourly, priceNow } from '../kinds/prices';
import type { Tone } from '../kinds/tone';
import { useKindMetadata } from '../state/useKindMetadata';
import { exactly } from '../kinds/format';
import { Ago } from './Ago';
import { EndVerb } from './End';
import { Icon } from './Icon';
import { LifecycleButtons } from './LifecycleButtons';

/** News for the user: the end is near, or the environment is stopped or paused. */
export function LifecycleBanner({ environment }: { environment: Environment }) {
  if (!hasBanner(environment)) return null;
  if (environment.paused) return <Paused environment={environment} />;
  if (isOff(environment)) return <Stopped environment={environment} />;
  return <Ending environment={environment} />;
}

function Banner({
  tone,
  icon,
  title,
  children,
  environment,
}: {
  tone: Tone;
  icon: 'clock' | 'pause';
  title: ReactNode;
  children: ReactNode;
  environment: Environment;
}) {
  return (
    <section className="notice" data-tone={tone} aria-labelledby="lifecycle-notice">
      <Icon name={icon} size={22} />
      <div className="grow">
        <h2 id="lifecycle-notice">{title}</h2>
        {children}
      </div>
      <div className="buttons">
        <LifecycleButtons environment={environment} />
      </div>
    </section>
  );
}

function Ending({ environment }: { environment: Environment }) {
  const { expiring, cannotStop } = environment;
  const end = endOf(environment);
  const isOver = expiring?.reason === 'Expired';
  return (
    <Banner
      tone="leaving"
      icon="clock"
      environment={environment}
      title={
        isOver || !end ? (
          'This environment has expired'
        ) : (
          <>
            This environment <EndVerb end={end} />
          </>
        )
      }
    >
      {end && !isOver && <p>At {exactly(Date.parse(end.at))}. Extend it to keep it longer.</p>}
      {isOver && <p>Extend it, or delete it.</p>}
      {cannotStop && <p className="small">Stop is not available: {cannotStop}.</p>}
    </Banner>
  );
}

function Stopped({ environment }: { environment: Environment }) {
  const { lifecycle, power } = environment;
  const { whenStopped } = useKindMetadata(environment);
  const end = endOf(environment);
  return (
    <Banner
      tone="idle"
      icon="pause"
      environment={environment}
      title={
        power === 'Stopped' ? 'This environment is stopped' : 'This environment is being stopped'
      }
    >
      {lifecycle?.stoppedAt && (
        <p>
          Stopped <Ago at={lifecycle.stoppedAt} /> {stopReason(environment)}.
          {end && (
            <>
              {' '}
              It <EndVerb end={end} />.
            </>
          )}
        </p>
      )}
      <p>
        {whenStopped} {power === 'Stopped' && `${hourly(priceNow(environment))}.`}
      </p>
    </Banner>
  );
}

function Paused({ environment }: { environment: Environment }) {
  const { claim } = useKindMetadata(environment);
  const end = endOf(environment);
  return (
    <Banner tone="idle" icon="pause" environment={environment} title="This environment is paused">
      <p>
        {claim
          ? 'Requests do not reach it. It continues, and its end still applies.'
          : 'Crossplane does not act on it, so it is not stopped at its end.'}{' '}
        Remove the annotation crossplane.io/paused to extend, stop or start it.
      </p>
      {claim && end && (
        <p>
          It <EndVerb end={end} />.
        </p>
      )}
    </Banner>
  );
}
