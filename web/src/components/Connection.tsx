import { Button } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { Fragment, useState } from 'react';
import { answer, api } from '../api/client';
import { Refused, words } from '../api/problem';
import type { Connection as Details, Environment } from '../api/schema';
import { databaseUrl, isSecret, machineName } from '../kinds/connections';
import { isInside, isLink, placeOf } from '../kinds/paths';
import { toLabel } from '../kinds/format';
import { sessionAtom } from '../state/session';
import { useKindMetadata } from '../state/useKindMetadata';
import { Copy } from './Copy';
import { Fold } from './Fold';
import { Icon } from './Icon';
import { ProblemAlert } from './ProblemAlert';
import { Closed, Keyless } from './Unreachable';

/**
 * Shows how to connect: the commands of each kind, and the missing keys and networks. Addresses are
 * visible at once, secrets only after a click.
 */
export function Connection({ environment }: { environment: Environment }) {
  const { endpoint, status, ready, failed, deletedAt } = environment;
  const { state } = useAtomValue(sessionAtom);
  const { addressless, targets } = useKindMetadata(environment);
  const facts = Object.entries(status)
    .flatMap(([name, value]) => flat(name, value))
    .filter(([name, value]) => value !== endpoint && name !== 'ready');
  return (
    <>
      {!deletedAt &&
        !(failed && !endpoint) &&
        targets.map((target) => <Target key={target} environment={environment} target={target} />)}
      {environment.sshClosed && <Closed environment={environment} />}
      {environment.sshKeyless && <Keyless />}
      <div className="way">
        <h3>Address</h3>
        <div className="address">
          {!endpoint ? (
            <p className="quiet">{noAddress(environment, addressless)}</p>
          ) : ready && isLink(endpoint) ? (
            <a href={endpoint} target="_blank" rel="noreferrer" className="code">
              {endpoint}
            </a>
          ) : (
            <code className="code">{endpoint}</code>
          )}
          {endpoint && <Copy text={endpoint} what="the address" />}
        </div>
        {endpoint && !ready && <p className="small">The environment is not ready yet.</p>}
        {endpoint && isInside(endpoint) && (
          <p className="note">The address is reachable from inside the cluster only.</p>
        )}
      </div>
      {/* Secrets that were shown in a session are removed when it ends. */}
      {!deletedAt && <Secrets key={state} environment={environment} targets={targets} />}
      {facts.length > 0 && <Outputs facts={facts} />}
    </>
  );
}

/** The commands for a machine, a cluster or a database. */
function Target({ environment, target }: { environment: Environment; target: string }) {
  const { name, namespace } = environment;
  const { targets } = useKindMetadata(environment);
  const connect = `paved connect ${name} -n ${namespace}`;
  if (target === 'machine') {
    const host = machineName(environment);
    return (
      <div className="way">
        <h3>Machine</h3>
        <Command words="Open a shell:" text={connect} />
        <Command words="With ssh, scp, rsync and editors:" text={`ssh ${host}`} />
        <p className="small">
          These need <code>paved ssh config</code> once on your machine.
        </p>
        <Button
          component="a"
          href={`vscode://vscode-remote/ssh-remote+${host}/home/developer`}
          variant="default"
          size="compact-sm"
        >
          Open in VS Code
        </Button>
      </div>
    );
  }
  if (target === 'cluster')
    return (
      <div className="way">
        <h3>Cluster</h3>
        <Command words="Add it to your kubeconfig:" text={connect} />
      </div>
    );
  // An environment with a cluster connects to its database by a flag.
  const flag = targets.length > 1 ? ' --database' : '';
  return (
    <div className="way">
      <h3>Database</h3>
      <Command words="Show the command of psql:" text={`${connect}${flag}`} />
    </div>
  );
}

function Command({ words: says, text }: { words: string; text: string }) {
  return (
    <>
      <p className="small">{says}</p>
      <div className="address">
        <code className="code">
          {text.split(' ').map((word, index) => (
            // A flag is one word: browsers break lines after hyphens.
            <Fragment key={index}>
              {index > 0 && ' '}
              {word.startsWith('-') ? <span className="whole-word">{word}</span> : word}
            </Fragment>
          ))}
        </code>
        <Copy text={text} what={`the command: ${text}`} />
      </div>
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
function Secrets({
  environment,
  targets,
}: {
  environment: Environment;
  targets: readonly string[];
}) {
  const [details, setDetails] = useState<Details>();
  const [error, setError] = useState<unknown>();
  const [asking, setAsking] = useState(false);
  const fetched = async (then: (details: Details) => void) => {
    setAsking(true);
    setError(undefined);
    try {
      then(
        details ??
          (await answer(
            api.POST('/api/v1/environments/{namespace}/{kind}/{name}/connection', {
              params: { path: placeOf(environment) },
            }),
          )),
      );
    } catch (refused) {
      setError(refused);
    } finally {
      setAsking(false);
    }
  };
  const download = () =>
    void fetched((one) => {
      const kubeconfig = one.values['kubeconfig'];
      if (kubeconfig === undefined) setError(new Error('The Secret has no kubeconfig yet.'));
      else save(`${environment.name}.kubeconfig`, kubeconfig);
    });
  const url = details && databaseUrl(details.values);
  return (
    <div className="secrets">
      <div className="secrets-head">
        <h3>Connection details</h3>
        <span className="buttons">
          {targets.includes('cluster') && (
            <Button variant="default" size="compact-sm" disabled={asking} onClick={download}>
              Download kubeconfig
            </Button>
          )}
          <Button
            variant="default"
            size="compact-sm"
            loading={asking}
            leftSection={<Icon name="eye" size={16} />}
            onClick={() => (details ? setDetails(undefined) : void fetched(setDetails))}
            aria-expanded={details !== undefined}
          >
            {details ? 'Hide' : 'Show'}
          </Button>
        </span>
      </div>
      {!details && error === undefined && (
        <p className="small">The portal reads them with your rights, and logs every view.</p>
      )}
      {error !== undefined && <Missing error={error} />}
      {details && Object.keys(details.values).length === 0 && (
        <p role="status">This environment has no credentials.</p>
      )}
      {url && (
        <>
          <p className="small">Connection string, copied with the password:</p>
          <div className="address">
            <code className="code">{url.masked}</code>
            <Copy text={url.whole} what="the connection string" />
          </div>
          {isInside(url.masked) && (
            <p className="note">The database is reachable from inside the cluster only.</p>
          )}
        </>
      )}
      {details && Object.keys(details.values).length > 0 && <Values values={details.values} />}
    </div>
  );
}

/** All values of the Secret. Passwords and certificates are masked until the user shows them. */
function Values({ values }: { values: Record<string, string> }) {
  const [bare, setBare] = useState(false);
  return (
    <Fold className="more" summary="All values">
      <Button variant="subtle" size="compact-sm" onClick={() => setBare(!bare)}>
        {bare ? 'Mask secrets' : 'Show secrets'}
      </Button>
      <dl className="facts" aria-live="polite">
        {Object.entries(values).map(([name, value]) => (
          <div key={name}>
            <dt>{toLabel(name)}</dt>
            <dd>
              {isSecret(name) && !bare ? (
                <code className="code fact" aria-label="masked">
                  ••••••••
                </code>
              ) : value.includes('\n') ? (
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
    </Fold>
  );
}

/** Saves a text as a file of the user. */
function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
