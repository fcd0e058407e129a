/** Words that are written otherwise than a name splits. */
const WRITTEN: Record<string, string> = {
  api: 'API', cloudsql: 'Cloud SQL', cidr: 'CIDR', cidrs: 'CIDRs', cpu: 'CPU', db: 'database', eks: 'EKS', gb: 'GB', gcp: 'GCP', gke: 'GKE', gpu: 'GPU', gitops: 'GitOps', id: 'ID', ip: 'IP',
  opencv: 'OpenCV', repo: 'repository', ssh: 'SSH', ssm: 'SSM', ttl: 'TTL', url: 'URL', vcpus: 'vCPUs', env: 'environment variables', helm: 'Helm', iam: 'IAM', postgres: 'PostgreSQL', tls: 'TLS', dns: 'DNS', argocd: 'Argo CD', knative: 'Knative', vcluster: 'virtual cluster',
};

/** A name of code as words: `sshPublicKeys` is `SSH public keys`, `security-group` is `Security group`. */
export function humane(name: string): string {
  const parts = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .map((part) => WRITTEN[part.toLowerCase()] ?? part.toLowerCase());
  const text = parts.join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A number of things in words: `1 environment`, `3 environments`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/** Made when it is first needed, and once: to make a format takes longer than to draw a card. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const relative = once(() => new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' }));
const exact = once(() => new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' }));

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** How long ago something was: `just now`, `25 sec ago`, `3 days ago`. A clock that goes wrong makes no future of it. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 10) return 'just now';
  const [unit, size] = UNITS.find(([, size]) => seconds >= size)!;
  return relative().format(-Math.floor(seconds / size), unit).replace('.', '');
}

/** A time to the second, in the reader's own zone. */
export function exactly(at: number): string {
  return exact().format(at);
}
