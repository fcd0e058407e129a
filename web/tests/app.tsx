import { render } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import axe from 'axe-core';
import { createStore } from 'jotai';
import { expect, vi } from 'vitest';
import { arrival } from '../src/api/problem';
import { App } from '../src/App';
import { Portal } from '../src/state/portal';
import { World } from './world';

/** Opens the pages at a path, with a fake portal. */
export function open(path: string, world = new World()) {
  const asked = (input: RequestInfo | URL, init?: RequestInit) =>
    world.fetch(input instanceof Request ? input : request(input, init));
  vi.stubGlobal('fetch', asked);
  window.history.replaceState(null, '', path);
  const store = createStore();
  const portal = new Portal(store, arrival());
  const page = render(<App store={store} portal={portal} />);
  return { ...page, world, store, portal, user: userEvent.setup({ delay: null }) };
}

/** node does not accept the signals of jsdom, so a signal of node follows it. */
function request(input: URL | string, { signal, ...init }: RequestInit = {}): Request {
  const gone = new AbortController();
  signal?.addEventListener('abort', () => gone.abort());
  // The cache mode has no effect here.
  return new Request(new URL(input, window.location.href), {
    headers: init.headers,
    method: init.method,
    signal: gone.signal,
  });
}

/** Fails on each accessibility violation that axe finds. Tests in a browser check the contrast. */
export async function expectAccessible(): Promise<void> {
  const { violations } = await axe.run(document, {
    rules: { 'color-contrast': { enabled: false } },
  });
  expect(
    violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
    ),
  ).toEqual([]);
}
