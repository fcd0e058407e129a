import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';

/** The code that CloudFront runs for a site of the kind `app`. */
const CODE = readFileSync(
  join(import.meta.dirname, '../../src/apis/unified_environment/rewrite.js'),
  'utf8',
);

type Kind = 'app' | 'pages';

interface Answer {
  uri?: string;
  statusCode?: number;
  headers?: { location: { value: string } };
}

/** The file of a path, or the status and the location of a redirect. */
function answer(kind: Kind, path: string): string {
  const code = CODE.replace('"app"', JSON.stringify(kind));
  const handler = runInNewContext(`${code}\nhandler`) as (event: unknown) => Answer;
  const mark = path.indexOf('?');
  const query = mark < 0 ? undefined : path.slice(mark + 1);
  const uri = mark < 0 ? path : path.slice(0, mark);
  const found = handler({ request: { method: 'GET', uri, rawQueryString: () => query } });
  return found.uri ?? `${String(found.statusCode)} ${String(found.headers?.location.value)}`;
}

/** A path, its file in an `app`, and the answer of `pages`. */
const PATHS: [string, string, string][] = [
  ['/', '/index.html', '/index.html'],
  ['/docs', '/index.html', '302 /docs/'],
  ['/docs/', '/index.html', '/docs/index.html'],
  ['/docs/start', '/index.html', '302 /docs/start/'],
  ['/v1.2/x', '/index.html', '302 /v1.2/x/'],
  ['/a.b/', '/index.html', '/a.b/index.html'],
  ['/style.css', '/style.css', '/style.css'],
  ['/docs/index.html', '/docs/index.html', '/docs/index.html'],
  ['/.well-known/security.txt', '/.well-known/security.txt', '/.well-known/security.txt'],
  ['/.well-known/acme', '/.well-known/acme', '/.well-known/acme'],
  ['/.well-known', '/.well-known', '/.well-known'],
  ['/docs/.well-known/x', '/index.html', '302 /docs/.well-known/x/'],
  ['/well-known/x', '/index.html', '302 /well-known/x/'],
  ['/assets/font', '/assets/font', '/assets/font'],
  ['/assets/', '/assets/', '/assets/'],
  ['/assets', '/index.html', '302 /assets/'],
  ['/docs/assets/font', '/index.html', '302 /docs/assets/font/'],
  ['/assetsx/font', '/index.html', '302 /assetsx/font/'],
  ['/docs/..', '/docs/..', '/docs/..'],
  ['/../x', '/index.html', '302 /../x/'],
  ['/caf%C3%A9', '/index.html', '302 /caf%C3%A9/'],
  ['/a%2Fb', '/index.html', '302 /a%2Fb/'],
  ['/logo%2Epng', '/logo%2Epng', '/logo%2Epng'],
  ['/docs?a=1&a=2&b=', '/index.html', '302 /docs/?a=1&a=2&b='],
  ['/docs?next=%2Fx%3Fy&c=%26', '/index.html', '302 /docs/?next=%2Fx%3Fy&c=%26'],
  ['/docs?', '/index.html', '302 /docs/?'],
  ['/docs/?a=1', '/index.html', '/docs/index.html'],
  ['/docs?file=x.html', '/index.html', '302 /docs/?file=x.html'],
];

describe('the rewrite of paths', () => {
  it.each(PATHS)('finds the file of %s', (path, app, pages) => {
    expect([answer('app', path), answer('pages', path)]).toEqual([app, pages]);
  });

  it.each([
    '//evil',
    '//evil.com/',
    '//evil.com/x',
    '///evil',
    '/\\evil',
    '\\\\evil',
    '/\\/evil',
    '//user@evil',
    '/%5Cevil',
    '/%2F%2Fevil',
    '/.//evil',
    '/..//evil',
    '/\t/evil',
    '\t//evil',
    '/\r\n/evil',
    '/ /evil',
    '/\u0000//evil',
  ])('never redirects %s to another host', (path) => {
    for (const kind of ['app', 'pages'] as const) {
      const [status, location] = answer(kind, path).split(' ');
      if (location === undefined) {
        continue;
      }
      expect(status).toBe('302');
      expect(new URL(location, 'https://site.example').host).toBe('site.example');
    }
  });

  it('has one kind to replace, and is smaller than the limit of 10 kB', () => {
    expect(CODE.match(/^const kind = "app";$/m)).not.toBeNull();
    expect(CODE.indexOf('"app"')).toBe(CODE.indexOf('const kind = "app"') + 13);
    expect(CODE.length).toBeLessThan(10_000);
  });
});
