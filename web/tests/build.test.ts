import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import openapiTS, { astToString, COMMENT_HEADER } from 'openapi-typescript';
import { expect, it } from 'vitest';

const WEB = join(import.meta.dirname, '..');
const read = (...path: string[]) => readFileSync(join(WEB, ...path), 'utf8');

it('the types match the description of the API: run `npm run types`', async () => {
  const ast = await openapiTS(read('openapi.json'), {
    emptyObjectsUnknown: true,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
  });
  expect(`${COMMENT_HEADER}${astToString(ast)}`).toBe(read('src', 'api', 'schema.d.ts'));
}, 60_000);

it('the page has no inline code, which the portal forbids', () => {
  const html = read('index.html');
  expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|javascript:/i);
  expect(
    [...html.matchAll(/<script([^>]*)>([^<]*)</g)].every(
      ([, attributes, body]) => attributes?.includes('src=') && body === '',
    ),
  ).toBe(true);
});

it('the page has content before the program is loaded', () => {
  expect(read('index.html')).toMatch(
    /<div id="root"><div class="middle">.*Paved Road.*<\/div><\/div>/,
  );
});

it('all styles of used library components are imported', () => {
  const sources = readdirSync(join(WEB, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.tsx'),
  );
  const used = new Set(
    sources.flatMap((file) =>
      [...read('src', file).matchAll(/import \{([^}]*)\} from '@mantine\/core'/g)].flatMap(
        ([, names]) => names!.split(',').map((name) => name.trim()),
      ),
    ),
  );
  const styles = new Set(readdirSync(join(WEB, 'node_modules', '@mantine', 'core', 'styles')));
  const missing = [...used].filter(
    (name) =>
      styles.has(`${name}.css`) && !read('src', 'styles', 'library.css').includes(`/${name}.css`),
  );
  // These components use only the styles of Input.
  expect(
    missing.filter((name) => !['NativeSelect', 'TextInput', 'Textarea'].includes(name)),
  ).toEqual([]);
});
