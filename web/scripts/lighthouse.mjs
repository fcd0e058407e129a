// Measures the Lighthouse scores of a running portal:
//   npm run lighthouse -- URL [--least 95] [--only list,create] [--runs 5]
// The score is the median of all runs, as Lighthouse advises, because a busy machine lowers the
// score of a single run. npx downloads Lighthouse in a pinned version. Lighthouse is not a
// dependency, because it is as large as all dependencies together.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CHROMIUM, kindPath, pageOf, QUIET, readPortal } from './browser.mjs';

const LIGHTHOUSE = 'lighthouse@12.8.2';
const CATEGORIES = ['performance', 'accessibility'];
const FORMS = { phone: [], desktop: ['--preset=desktop'] };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    least: { type: 'string', default: '95' },
    only: { type: 'string' },
    runs: { type: 'string', default: '1' },
  },
});
const [url] = positionals;
if (!url)
  throw new Error('The portal’s URL is needed: npm run lighthouse -- http://127.0.0.1:8080');
const folder = mkdtempSync(join(tmpdir(), 'lighthouse-'));

/**
 * Serves the portal to a user who is not signed in. A portal without authentication shows its
 * sign-in page only this way.
 */
async function serveSignedOut() {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/api/')) {
      response
        .writeHead(401, { 'content-type': 'application/problem+json' })
        .end(JSON.stringify({ status: 401, detail: 'Sign in.' }));
      return;
    }
    const passed = ask(
      new URL(request.url, url),
      { headers: { ...request.headers, host: new URL(url).host } },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    passed.on('error', () => response.writeHead(502).end());
    passed.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Runs Lighthouse, which writes its results to files. */
function lighthouse(...flags) {
  const run = spawn('npx', ['--yes', LIGHTHOUSE, ...flags, '--quiet'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, CHROME_PATH: CHROMIUM },
  });
  return new Promise((resolve, reject) => {
    run.on('error', reject);
    run.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`lighthouse ended with ${code}`)),
    );
  });
}

const CPU = [
  [150, 1],
  [800, 2],
  [1300, 3],
  [1533, 4],
  [2000, 6],
];

/**
 * The CPU slowdown that makes this machine as slow as Lighthouse's phone. It depends on
 * Lighthouse's benchmark of this machine. The default, four, fits only some machines. `CPU` has the
 * values of the calculator in Lighthouse's documentation.
 */
function slowdown(benchmarkIndex) {
  const above = CPU.findIndex(
    ([index], at) => at > 0 && (benchmarkIndex <= index || at === CPU.length - 1),
  );
  const [[index, times], [next, more]] = CPU.slice(above - 1, above + 1);
  return Math.max(1, times + ((benchmarkIndex - index) / (next - index)) * (more - times));
}

/** Records a page load at full speed. Lighthouse then scores it for the speed of the device. */
async function measure(page, form, run) {
  const recorded = join(folder, `${page.name}-${form}-${run}`);
  const report = `${recorded}.json`;
  const flags = [
    page.url,
    `--only-categories=${CATEGORIES.join(',')}`,
    `--chrome-flags=--headless=new ${QUIET.join(' ')}`,
    ...FORMS[form],
  ];
  await lighthouse(`--gather-mode=${recorded}`, ...flags);
  const file = join(recorded, 'artifacts.json');
  const artifacts = JSON.parse(readFileSync(file, 'utf8'));
  const times =
    form === 'phone'
      ? Number(slowdown(artifacts.BenchmarkIndex).toFixed(2))
      : artifacts.settings.throttling.cpuSlowdownMultiplier;
  artifacts.settings.throttling.cpuSlowdownMultiplier = times;
  writeFileSync(file, JSON.stringify(artifacts));
  await lighthouse(
    `--audit-mode=${recorded}`,
    `--throttling.cpuSlowdownMultiplier=${times}`,
    '--output=json',
    `--output-path=${report}`,
    ...flags,
  );
  return { ...JSON.parse(readFileSync(report, 'utf8')), times };
}

/** The median of several runs, by performance. */
async function median(page, form) {
  const all = [];
  for (let run = 1; run <= Number(values.runs); run += 1) all.push(await measure(page, form, run));
  const score = (report) => report.categories.performance.score;
  return all.sort((a, b) => score(a) - score(b))[(all.length - 1) >> 1];
}

const { kinds, states, count } = await readPortal(url);
const signedOut = await serveSignedOut();
const at = (path) => new URL(path, url).href;
const pages = [
  { name: 'sign-in', url: signedOut.url },
  { name: `list-of-${count}`, url: at('/?owner=*') },
  { name: 'create', url: kinds[0] && at(`/new?kind=${kindPath(kinds[0])}`) },
  {
    name: 'environment',
    url: (states.ready ?? states.failing) && at(pageOf(states.ready ?? states.failing)),
  },
  { name: 'keys', url: at('/keys') },
  { name: 'operations', url: at('/operations') },
].filter(
  (page) =>
    page.url && (!values.only || values.only.split(',').some((one) => page.name.startsWith(one))),
);

const METRICS = {
  FCP: 'first-contentful-paint',
  LCP: 'largest-contentful-paint',
  TBT: 'total-blocking-time',
  CLS: 'cumulative-layout-shift',
};
console.log(
  ['page', 'as', ...CATEGORIES, ...Object.keys(METRICS), 'CPU']
    .map((word) => word.padEnd(15))
    .join(''),
);
let low = 0;
for (const page of pages) {
  for (const form of Object.keys(FORMS)) {
    const { categories, audits, environment, times } = await median(page, form);
    const scores = CATEGORIES.map((category) => Math.round(categories[category].score * 100));
    low += scores.filter((score) => score < Number(values.least)).length;
    console.log(
      [
        page.name,
        form,
        ...scores,
        ...Object.values(METRICS).map((id) => audits[id].displayValue),
        `${Math.round(environment.benchmarkIndex)} / ${times}`,
      ]
        .map((word) => String(word).padEnd(15))
        .join(''),
    );
    const failing = Object.values(audits).filter(
      ({ score, id }) =>
        score === 0 && categories.accessibility.auditRefs.some((one) => one.id === id),
    );
    failing.forEach(({ title }) => console.log(`  ${title}`));
  }
}
signedOut.close();
console.log(`Reports: ${folder}`);
if (low > 0) {
  console.error(`${low} scores are below ${values.least}.`);
  process.exitCode = 1;
}
