// Starts Debian's Chromium without background requests: it connects only to the portal.
import { chromium } from 'playwright-core';

/** The browser's path. CHROME_PATH overrides it. */
export const CHROMIUM = process.env.CHROME_PATH ?? '/usr/bin/chromium';

export const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts the browser. */
export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: QUIET });
}

/** Reads a portal's kinds, its number of environments, and an environment for each state. */
export async function readPortal(url) {
  const ask = async (path) => {
    const answer = await fetch(new URL(path, url), { headers: { accept: 'application/json' } });
    if (!answer.ok) throw new Error(`${path}: the portal answers ${answer.status}`);
    return answer.json();
  };
  const [me, kinds, { items }] = await Promise.all([
    ask('/api/v1/me'),
    ask('/api/v1/kinds'),
    ask('/api/v1/environments?limit=500'),
  ]);
  const own = items.filter((one) => one.labels.owner === me.owner);
  // The caller's environments come first, sorted by their number of composed resources.
  const order = [...own, ...items].sort(
    (a, b) => own.includes(b) - own.includes(a) || b.parts.length - a.parts.length,
  );
  const first = (fits) => order.find(fits);
  const states = {
    ready:
      first((one) => one.ready && one.endpoint?.startsWith('ssh ')) ?? first((one) => one.ready),
    failing:
      first((one) => one.failed && one.parts.some(({ message }) => message)) ??
      first((one) => one.failed),
    'coming-up': first((one) => !one.ready && !one.failed && !one.deletedAt),
    leaving: first((one) => one.deletedAt),
    ending: first((one) => one.expiring && one.power === 'Running'),
    stopped: first((one) => one.power === 'Stopped'),
  };
  return { kinds, states, count: items.length };
}

/** The kind's segment in page paths. */
export const kindPath = ({ plural, apiVersion }) => `${plural}.${apiVersion.split('/')[0]}`;

/** The path of an environment's page. */
export const pageOf = (one) => `/environments/${one.namespace}/${kindPath(one)}/${one.name}`;
