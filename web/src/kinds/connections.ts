import type { Environment } from '../api/schema';

/** The name of a workspace in the configuration that `paved ssh config` writes. */
export function machineName({ name, namespace }: Pick<Environment, 'name' | 'namespace'>): string {
  return `${name}.${namespace}.paved`;
}

/** Whether a key of a connection Secret holds a secret. */
export function isSecret(key: string): boolean {
  return /password|kubeconfig|token|key$/i.test(key);
}

/** Characters in the place of a password. */
const MASK = '••••••••';

/**
 * The connection string of a PostgreSQL database, whole and with a masked password. The keys of
 * connection Secrets differ between APIs.
 */
export function databaseUrl(
  values: Readonly<Record<string, string>>,
): { whole: string; masked: string } | undefined {
  const first = (...keys: string[]) => keys.map((key) => values[key]).find(Boolean);
  const host = first('db_address', 'db_host', 'endpoint', 'host');
  const user = first('db_user', 'username');
  const password = first('db_password', 'password');
  const name = first('db_name', 'database');
  if (!host || !user || !password || !name) return undefined;
  const port = first('db_port', 'port') ?? '5432';
  // A connection string has IPv6 addresses in brackets.
  const place = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const url = (secret: string) =>
    `postgresql://${encodeURIComponent(user)}:${secret}@${place}:${port}/${encodeURIComponent(name)}`;
  return { whole: url(encodeURIComponent(password)), masked: url(MASK) };
}
