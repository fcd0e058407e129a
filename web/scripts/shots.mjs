// Takes screenshots of every page of a running portal, at three widths, dark and light. Reports the
// problems that axe finds, and errors on the console.
//   npm run shots -- URL [--to FOLDER] [--only NAME,NAME] [--widths 390,1600] [--schemes dark]
// Takes the small screenshots of the documentation:
//   npm run shots -- URL --docs FOLDER [--only NAME,NAME]
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { kindPath, launch, pageOf, readPortal } from './browser.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    to: { type: 'string' },
    only: { type: 'string' },
    widths: { type: 'string', default: '390,1024,1600' },
    schemes: { type: 'string', default: 'light,dark' },
    docs: { type: 'string' },
  },
});
const [url] = positionals;
if (!url) throw new Error('The portal’s URL is needed: npm run shots -- http://127.0.0.1:8080');
const WIDTHS = values.widths.split(',').map(Number);
const SCHEMES = values.schemes.split(',');
const folder =
  values.docs ?? values.to ?? fileURLToPath(new URL('../../target/shots', import.meta.url));
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const settle = (page, milliseconds = 600) => page.waitForTimeout(milliseconds);
const problem = (status, detail) => ({
  status,
  contentType: 'application/problem+json',
  body: JSON.stringify({ status, detail, requestId: 'a1b2c3d4' }),
});
const refusing =
  (path, status, detail, method = 'GET') =>
  async (page) =>
    page.route(path, (route) =>
      route.request().method() === method
        ? route.fulfill(problem(status, detail))
        : route.fallback(),
    );
const signedOut = refusing('**/api/v1/me', 401, 'Sign in.');
const noStream = async (page) => page.route('**/api/v1/watch', (route) => route.abort());

/**
 * Every page by name: its path, the setup before it opens (`before`), and the user's actions on it
 * (`act`). `screen` limits the screenshot to the screen, for pages with elements that stick to an
 * edge of the screen.
 */
function pages({ kinds, states }) {
  const all = {
    'sign-in': { path: '/', before: signedOut },
    environments: { path: '/?owner=*' },
    mine: { path: '/' },
    table: { path: '/?owner=*&view=table' },
    'nothing-fits': { path: '/?owner=*&q=zzz' },
    'line-down': { path: '/?owner=*', before: noStream },
    choose: { path: '/new' },
    keys: { path: '/keys' },
    operations: { path: '/operations' },
    nowhere: { path: '/nowhere' },
    'may-not': {
      path: '/',
      before: refusing(
        '**/api/v1/me',
        403,
        'The portal has no permission to act for you. Ask its operator to add the user "oidc:ada" to `impersonation.users` of the chart.',
      ),
    },
    'no-answer': {
      path: '/',
      before: refusing('**/api/v1/me', 502, 'The Kubernetes API does not respond.'),
    },
    'session-ended': {
      path: '/',
      before: refusing('**/api/v1/watch', 401, 'Sign in.'),
      screen: true,
    },
    offline: { path: '/?owner=*', act: offline, screen: true },
    'choose-forbidden': { path: '/new', before: mayNothing },
    'cannot-be-shown': { path: '/environments/team-vision/stockpools.platform.acme.io/missing' },
  };
  for (const kind of kinds)
    all[`new-${kindPath(kind)}`] = {
      path: `/new?kind=${kindPath(kind)}`,
      act: (page) => settle(page, 1500),
      screen: true,
    };
  const [first] = kinds;
  if (first)
    all['new-refused'] = { path: `/new?kind=${kindPath(first)}`, act: refuse, screen: true };
  for (const [state, one] of Object.entries(states))
    all[state] = one
      ? { path: pageOf(one) }
      : { missing: `the portal has no environment in state ${state}` };
  if (states.ready) {
    const path = pageOf(states.ready);
    all.gone = { path, act: gone(states.ready) };
    all.meanwhile = {
      path: `${path}?tab=change`,
      before: fasterOther(`**/api/v1${path}`),
      act: save,
      screen: true,
    };
    all['not-deleted'] = {
      path,
      before: refusing(
        `**/api/v1${path}*`,
        403,
        'gpudevworkspaceclaims.platform.acme.io "ada" is forbidden: User "ada" cannot delete resource "gpudevworkspaceclaims"',
        'DELETE',
      ),
      act: remove(states.ready),
      screen: true,
    };
    all.secrets = {
      path,
      act: async (page) => {
        await page.getByRole('button', { name: 'Show', exact: true }).click();
        await settle(page);
      },
    };
    all.delete = {
      path,
      screen: true,
      act: async (page) => {
        await page.getByRole('button', { name: 'Delete', exact: true }).click();
        await settle(page);
      },
    };
    all.stop = {
      path,
      screen: true,
      act: async (page) => {
        await page.getByRole('button', { name: 'Stop', exact: true }).click();
        await settle(page);
      },
    };
    all.change = { path: `${path}?tab=change`, act: settle, screen: true };
    all.yaml = { path: `${path}?tab=yaml`, act: settle };
  }
  if (states.ending)
    all.extend = {
      path: pageOf(states.ending),
      screen: true,
      act: async (page) => {
        await page.getByRole('button', { name: 'Extend', exact: true }).click();
        await settle(page);
      },
    };
  return all;
}

async function refuse(page) {
  await page.getByLabel(/^Name/).first().fill('Not a name!');
  await page.getByRole('button', { name: /^Create (?!anyway)/ }).click();
  await settle(page);
}

const offline = async (page) => {
  await page.context().setOffline(true);
  await page.getByText('You are offline').waitFor();
};

/** Forbids the user to create environments. */
const mayNothing = async (page) =>
  page.route('**/api/v1/kinds', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({
      response: answer,
      json: (await answer.json()).map((kind) => ({ ...kind, mayCreate: false })),
    });
  });

/** Simulates an environment that was deleted while its page was open. */
const gone = (one) => async (page) => {
  await refusing(`**/api/v1${pageOf(one)}`, 404, `"${one.name}" not found`)(page);
  await page.route('**/api/v1/watch', (route) =>
    route.fulfill({
      contentType: 'text/event-stream',
      body: 'event: snapshot\ndata: {"total":0}\n\nevent: synced\nid: other-0-scope\ndata: {}\n\n',
    }),
  );
  await page.route('**/api/v1/environments?*', (route) => route.fulfill({ json: { items: [] } }));
  await page.evaluate(() => window.dispatchEvent(new window.Event('offline')));
  await page.getByRole('heading', { name: `${one.name} was deleted` }).waitFor();
};

/** Requests a deletion that the portal rejects. */
const remove = (one) => async (page) => {
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByLabel(/^Type .* to confirm/).fill(one.name);
  await page.getByRole('button', { name: 'Delete environment' }).click();
  await page.getByText('was not deleted').waitFor();
  await settle(page);
};

/** Simulates a concurrent change of a number by another user. */
const fasterOther = (where) => async (page) => {
  let refused = false;
  await page.route(where, async (route) => {
    if (route.request().method() === 'PUT') {
      refused = true;
      return route.fulfill(problem(409, 'the object has been modified'));
    }
    if (!refused) return route.continue();
    const answer = await route.fetch();
    const json = await answer.json();
    const spec = json.object.spec.parameters ?? json.object.spec;
    const number = Object.keys(spec).find((name) => typeof spec[name] === 'number');
    spec[number] += 1;
    return route.fulfill({ response: answer, json });
  });
};

async function save(page) {
  await page.locator('form input[type=number]:enabled').first().fill('900');
  await page.getByRole('button', { name: 'Save changes' }).click();
  await settle(page, 1500);
}

/** Opens a page, runs the user's actions on it, and returns the page's problems. */
async function show(page, { path, before, act }) {
  const wrong = new Set();
  page.on(
    'console',
    (message) =>
      message.type() === 'error' &&
      !/Failed to load resource/.test(message.text()) &&
      wrong.add(message.text()),
  );
  page.on('pageerror', (error) => wrong.add(error.message));
  await before?.(page);
  await page.goto(new URL(path, url).href, { waitUntil: 'load' });
  await page.locator('h1').first().waitFor();
  await settle(page, 900);
  await act?.(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) wrong.add(`scrolls sideways by ${wide} px`);
  return wrong;
}

/** Makes the screen as high as the page, so that the browser draws the whole page. */
async function wholly(page, width) {
  const height = await page.evaluate(() =>
    Math.max(document.documentElement.scrollHeight, window.innerHeight),
  );
  await page.setViewportSize({ width, height });
  await settle(page, 300);
}

async function accessible(page) {
  await page.evaluate(`${axe};0`);
  const { violations } = await page.evaluate(() => window.axe.run(document));
  return violations.map(
    ({ id, nodes }) =>
      `axe: ${id} at ${nodes
        .slice(0, 3)
        .map(({ target }) => target.join(' '))
        .join(', ')}`,
  );
}

async function everything(browser, portal) {
  const only = values.only?.split(',');
  const chosen = Object.entries(pages(portal)).filter(
    ([name]) => !only || only.some((one) => name.startsWith(one)),
  );
  let bad = 0;
  for (const colorScheme of SCHEMES) {
    for (const width of WIDTHS) {
      const context = await browser.newContext({
        viewport: { width, height: width < 500 ? 844 : 900 },
        colorScheme,
      });
      for (const [name, what] of chosen) {
        if (what.missing) {
          console.error(`${name}: ${what.missing}`);
          bad += 1;
          continue;
        }
        const page = await context.newPage();
        const wrong = await show(page, what).catch((error) => [error.message.split('\n')[0]]);
        const all = [...wrong, ...(await accessible(page))];
        if (!what.screen) await wholly(page, width);
        await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
        if (all.length > 0) console.error(`${name} ${width} ${colorScheme}: ${all.join('; ')}`);
        bad += all.length;
        await page.close();
        await context.setOffline(false);
      }
      await context.close();
    }
  }
  console.log(
    `${chosen.length} pages, ${WIDTHS.length} widths, ${SCHEMES.join(' and ')}: ${folder}`,
  );
  return bad;
}

/** The screenshots of the documentation. */
const DOCS = [
  { name: 'environments', page: 'environments', width: 1280, height: 800, colorScheme: 'light' },
  {
    name: 'new',
    page: 'new-gpudevworkspaceclaims',
    width: 1280,
    height: 800,
    colorScheme: 'light',
  },
  { name: 'coming-up', page: 'coming-up', width: 1280, height: 800, colorScheme: 'dark' },
  { name: 'failing', page: 'failing', width: 1280, height: 1090, colorScheme: 'light' },
  { name: 'ending', page: 'ending', width: 1280, height: 800, colorScheme: 'light' },
  { name: 'phone', page: 'environments', width: 390, height: 800, colorScheme: 'dark' },
];

async function forDocs(browser, portal) {
  const all = Object.entries(pages(portal));
  const only = values.only?.split(',');
  const chosen = DOCS.filter(({ name }) => !only || only.includes(name));
  for (const { name, page: wanted, width, height, colorScheme } of chosen) {
    const found =
      all.find(([one]) => one === wanted) ?? all.find(([one]) => one.startsWith(wanted));
    if (!found || found[1].missing)
      throw new Error(`There is nothing to show of “${name}” just now.`);
    const context = await browser.newContext({ viewport: { width, height }, colorScheme });
    const page = await context.newPage();
    await show(page, found[1]);
    const bytes = await page.screenshot({ path: join(folder, `portal-${name}.png`) });
    console.log(`portal-${name}.png  ${(bytes.length / 1024).toFixed(0)} KiB`);
    await context.close();
  }
  return 0;
}

mkdirSync(folder, { recursive: true });
const browser = await launch();
try {
  const portal = await readPortal(url);
  const bad = await (values.docs ? forDocs : everything)(browser, portal);
  process.exitCode = bad > 0 ? 1 : 0;
} finally {
  await browser.close();
}
