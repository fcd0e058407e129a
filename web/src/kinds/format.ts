/** Words that are not written as they appear in a name. */
const WRITTEN: Record<string, string> = {
  api: 'API',
  cloudsql: 'Cloud SQL',
  cidr: 'CIDR',
  cidrs: 'CIDRs',
  cpu: 'CPU',
  db: 'database',
  eks: 'EKS',
  gb: 'GB',
  gcp: 'GCP',
  gke: 'GKE',
  gpu: 'GPU',
  gitops: 'GitOps',
  id: 'ID',
  ip: 'IP',
  opencv: 'OpenCV',
  repo: 'repository',
  ssh: 'SSH',
  ssm: 'SSM',
  ttl: 'time to live',
  url: 'URL',
  vcpus: 'vCPUs',
  env: 'environment variables',
  helm: 'Helm',
  iam: 'IAM',
  postgres: 'PostgreSQL',
  tls: 'TLS',
  dns: 'DNS',
  argocd: 'Argo CD',
  knative: 'Knative',
  vcluster: 'virtual cluster',
};

/**
 * Converts an identifier to words: `sshPublicKeys` is `SSH public keys`, `security-group` is
 * `Security group`.
 */
export function toLabel(name: string): string {
  const parts = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter(Boolean)
    .map((part) => WRITTEN[part.toLowerCase()] ?? part.toLowerCase());
  const text = parts.join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/*
 * The functions below avoid Intl and localeCompare. The first use of either loads data, which takes
 * a phone longer than drawing ten cards. Pages are in English, and the compared texts are ASCII:
 * names and times of the API server.
 */

/** Compares two texts by character codes, as kubectl does. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A number of things in words: `1 environment`, `2,000 environments`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${String(number).replace(/\B(?=(\d{3})+$)/g, ',')} ${number === 1 ? one : many}`;
}

/** The plural is the singular unless `many` is given. */
const UNITS: [seconds: number, one: string, many?: string][] = [
  [31_536_000, 'yr'],
  [2_592_000, 'mo'],
  [86_400, 'day', 'days'],
  [3_600, 'hr'],
  [60, 'min'],
  [1, 'sec'],
];

/**
 * How long ago a time was: `just now`, `25 sec ago`, `3 days ago`. A time in the future is `just
 * now`.
 */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  if (seconds < 10) return 'just now';
  const [size, one, many] = UNITS.find(([size]) => seconds >= size)!;
  return `${count(Math.floor(seconds / size), one, many ?? one)} ago`;
}

/**
 * How long it takes until a time, in its two largest units where the first alone is coarse:
 * `25 min`, `3 hr 12 min`, `14 days`. Empty once the time has come.
 */
export function until(at: number, now: number): string {
  const seconds = Math.ceil((at - now) / 1000);
  if (!(seconds > 0)) return '';
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes < 1) return 'under 1 min';
  if (hours < 1) return `${minutes} min`;
  if (hours >= 48) return count(Math.floor(hours / 24), 'day');
  const rest = hours < 10 ? minutes % 60 : 0;
  return `${hours} hr${rest > 0 ? ` ${rest} min` : ''}`;
}

/**
 * The time from one time to another, in words and rounded to a minute: `8 hr`. The delay of a
 * request does not shorten it.
 */
export function between(from: number, to: number): string {
  return until(Math.max(Math.round((to - from) / 60_000) * 60_000, 1), 0);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A time to the second, in the user's time zone: `3 Feb 2026, 09:05:00 UTC+01:00`. */
export function exactly(at: number): string {
  const time = new Date(at);
  const two = (number: number) => String(Math.floor(number)).padStart(2, '0');
  const ahead = -time.getTimezoneOffset();
  const zone =
    ahead === 0
      ? ''
      : `${ahead < 0 ? '-' : '+'}${two(Math.abs(ahead) / 60)}:${two(Math.abs(ahead) % 60)}`;
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':');
  return `${time.getDate()} ${MONTHS[time.getMonth()]} ${time.getFullYear()}, ${clock} UTC${zone}`;
}
