import { Button } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, api } from '../api/client';
import { Refused, words } from '../api/problem';
import type { Connection as Details, Environment } from '../api/schema';
import { isInside, isLink, placeOf } from '../kinds/paths';
import { toLabel } from '../kinds/format';
import { sessionAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { Copy } from './Copy';
import { Icon } from './Icon';
import { ProblemAlert } from './ProblemAlert';

/** Shows how to connect. Addresses are visible at once, secrets only after a click. */
export function Connection({ environment }: { environment: Environment }) {
  const { endpoint, status } = environment;
  const { state } = useAtomValue(sessionAtom);
  const { addressless, connects } = useKindMetadata(environment);
  const facts = Object.entries(status)
    .flatMap(([name, value]) => flat(name, value))
    .filter(([name, value]) => value !== endpoint && name !== 'ready');
  const command = connects
    ? `paved connect ${environment.name} -n ${environment.namespace}`
    : undefined;
  return (
    <>
      <div className="address">
        {!endpoint ? (
          <p className="quiet">{noAddress(environment, addressless)}</p>
        ) : isLink(endpoint) ? (
          <a href={endpoint} target="_blank" rel="noreferrer" className="code">
            {endpoint}
          </a>
        ) : (
          <code className="code">{endpoint}</code>
        )}
        {endpoint && <Copy text={endpoint} what="the address" />}
      </div>
      {command && (
        <div className="machine">
          <p className="small">From your machine:</p>
          <div className="address">
            <code className="code">{command}</code>
            <Copy text={command} what="the command" />
          </div>
        </div>
      )}
      {/* Secrets that were shown in a session are removed when it ends. */}
      <Secrets key={state} environment={environment} />
      {endpoint && isInside(endpoint) && (
        <p className="note">The address is reachable from inside the cluster only.</p>
      )}
      {environment.sshClosed && <Closed />}
      {environment.sshKeyless && <Keyless />}
      {facts.length > 0 && <Outputs facts={facts} />}
    </>
  );
}

/** Why an environment has no address. */
function noAddress({ power, ready, deletedAt, failed }: Environment, addressless: boolean): string {
  if (addressless) return 'This environment has no address.';
  if (power === 'Stopped') return 'No address while the environment is stopped.';
  if (ready) return 'This environment has no address.';
  if (deletedAt) return 'The address was removed.';
  return failed ? 'No address: the environment could not be created.' : 'No address yet.';
}

function Closed() {
  return (
    <p className="note">
      SSH is closed: no network is allowed. Add one under{' '}
      <Link href="?tab=change">Change › Allowed CIDRs</Link>. Until then, this command opens an AWS
      session.
    </p>
  );
}

function Keyless() {
  return (
    <p className="note">
      No SSH key: connect by AWS Session Manager. To use SSH, add your key to ~/.ssh/authorized_keys
      in a session. New workspaces get the keys in <Link href="/keys">your list of keys</Link>.
    </p>
  );
}

function flat(name: string, value: unknown): [string, string][] {
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([inner, one]) => flat(`${name} ${inner}`, one));
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? ([[name, String(value)]].filter(([, text]) => text !== '') as [string, string][])
    : [];
}

/**
 * The fields of the status. They are last because they grow while the environment is created. Above
 * them, no button moves while the user clicks.
 */
function Outputs({ facts }: { facts: [string, string][] }) {
  return (
    <div className="outputs">
      <h3>Outputs</h3>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{toLabel(name)}</dt>
            <dd>
              <span className="fact">{value}</span>
              <Copy text={value} what={toLabel(name)} />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** Why no secret is shown. A Secret that does not exist yet is not an error. */
function Missing({ error }: { error: unknown }) {
  if (error instanceof Refused && error.status === 404) return <p role="status">{words(error)}</p>;
  return <ProblemAlert title="Could not load the connection details" error={error} />;
}

/**
 * The values of the Secret. They are fetched on a click and never stored. They are removed when the
 * user hides them or the session ends.
 */
function Secrets({ environment }: { environment: Environment }) {
  const [details, setDetails] = useState<Details>();
  const [error, setError] = useState<unknown>();
  const [asking, setAsking] = useState(false);
  const show = async () => {
    setAsking(true);
    setError(undefined);
    try {
      setDetails(
        await answer(
          api.POST('/api/v1/environments/{namespace}/{kind}/{name}/connection', {
            params: { path: placeOf(environment) },
          }),
        ),
      );
    } catch (refused) {
      setError(refused);
    } finally {
      setAsking(false);
    }
  };
  return (
    <div className="secrets">
      <div className="secrets-head">
        <h3>Connection details</h3>
        <Button
          variant="default"
          size="compact-sm"
          loading={asking}
          leftSection={<Icon name="eye" size={16} />}
          onClick={() => (details ? setDetails(undefined) : void show())}
          aria-expanded={details !== undefined}
        >
          {details ? 'Hide' : 'Show'}
        </Button>
      </div>
      {!details && error === undefined && (
        <p className="small">
          Click Show to fetch the credentials with your permissions. Every view is logged.
        </p>
      )}
      {error !== undefined && <Missing error={error} />}
      {details && Object.keys(details.values).length === 0 && (
        <p role="status">This environment has no credentials.</p>
      )}
      {details && (
        <dl className="facts" aria-live="polite">
          {Object.entries(details.values).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                {value.includes('\n') ? (
                  // A text that scrolls must be reachable by keyboard.
                  // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
                  <pre tabIndex={0} aria-label={name}>
                    {value}
                  </pre>
                ) : (
                  <code className="code fact">{value}</code>
                )}
                <Copy text={value} what={name} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
