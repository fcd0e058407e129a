// Measures the compressed size of a first visit: the page, the files that it names, and their
// imports. A visit that starts at a form also loads that form.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const MOST = 250 * 1024;
const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('manifest.json', dist), 'utf8'));
const size = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;

function files(key, seen = new Set()) {
  const { file, css = [], imports = [] } = manifest[key];
  [file, ...css].forEach((one) => seen.add(one));
  imports.forEach((one) => files(one, seen));
  return seen;
}

const first = new Set(['index.html', 'scheme.js', 'favicon.svg', ...files('index.html')]);
const form = new Set([...files('src/pages/CreateForm.tsx')].filter((file) => !first.has(file)));
const sum = (all) => [...all].reduce((total, file) => total + size(file), 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
for (const file of first) console.log(`${kib(size(file)).padStart(11)}  ${file}`);
const loads = { page: sum(first), form: sum(first) + sum(form) };
console.log(`${kib(loads.page).padStart(11)}  first load, gzip (at most ${kib(MOST)})`);
console.log(`${kib(loads.form).padStart(11)}  first load at a form, gzip (at most ${kib(MOST)})`);
for (const what of Object.keys(loads)) {
  if (loads[what] > MOST) {
    console.error(`The first load of a ${what} is too large.`);
    process.exitCode = 1;
  }
}
