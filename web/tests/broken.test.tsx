import { act, screen, within } from '@testing-library/react';
import { beforeEach, expect, it, vi } from 'vitest';
import { expectAccessible, open } from './app';
import { World } from './world';

vi.mock('../src/pages/Yaml', () => ({
  default: () => {
    throw new TypeError(
      'Failed to fetch dynamically imported module: https://portal.test/assets/Yaml-x1y2.js',
    );
  },
}));
vi.mock('../src/pages/CreateForm', () => ({
  default: () => {
    throw new TypeError(
      'Failed to fetch dynamically imported module: https://portal.test/assets/CreateForm-x1y2.js',
    );
  },
}));
vi.mock('../src/pages/SessionEnded', () => ({
  default: () => {
    throw new TypeError(
      'Failed to fetch dynamically imported module: https://portal.test/assets/SessionEnded-x1y2.js',
    );
  },
}));
vi.mock('../src/pages/Keys', () => ({
  default: () => {
    throw new Error('no such field');
  },
}));

// React also logs the error to the console.
beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

const ADA = '/environments/team-vision/gpudevworkspaceclaims.platform.acme.io/ada';

it('a broken view is reported in its place, and other views work', async () => {
  const world = new World();
  world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
  const { user } = open(ADA, world);
  await user.click(await screen.findByRole('tab', { name: 'YAML' }));
  expect(await screen.findByRole('alert')).toHaveTextContent(
    'Could not load this sectionThe portal did not respond',
  );
  expect(screen.getByRole('button', { name: 'Try again' })).toBeVisible();
  await expectAccessible();
  // Offline, a reload would fail and lose the displayed data.
  const online = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  act(() => void window.dispatchEvent(new Event('offline')));
  expect(await screen.findByText(/Reload the page when you are online again/)).toBeVisible();
  expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  online.mockRestore();
  act(() => void window.dispatchEvent(new Event('online')));
  expect(await screen.findByRole('button', { name: 'Try again' })).toBeVisible();
  await user.click(screen.getByRole('tab', { name: 'Overview' }));
  expect(await screen.findByRole('region', { name: 'Resources' })).toBeVisible();
  expect(screen.queryByRole('alert')).toBeNull();
});

it('a page that cannot be rendered reports it, and keeps its links', async () => {
  const { user } = open('/keys');
  expect(
    await screen.findByRole('heading', { level: 1, name: 'Something went wrong' }),
  ).toBeVisible();
  expect(screen.getByRole('alert')).toHaveTextContent('no such field');
  await expectAccessible();
  await user.click(screen.getByRole('link', { name: 'Operations' }));
  expect(await screen.findByRole('heading', { level: 1, name: 'Operations' })).toBeVisible();
});

it('a broken form keeps the page around it and the other kinds', async () => {
  const { user } = open('/new');
  await user.click(await screen.findByRole('link', { name: 'GPU workspace' }));
  expect(await screen.findByRole('alert')).toHaveTextContent('Could not load this section');
  expect(screen.getByRole('heading', { level: 1, name: 'New GPU workspace' })).toBeVisible();
  await user.click(screen.getByRole('link', { name: 'All templates' }));
  expect(await screen.findByRole('link', { name: 'GPU workspace' })).toBeVisible();
  expect(screen.queryByRole('alert')).toBeNull();
});

it('an ended session is reported although its dialog does not load', async () => {
  const { world } = open('/');
  await screen.findByRole('heading', { level: 1, name: 'My environments' });
  world.me = undefined;
  world.reset('expired');
  const told = await screen.findByRole('alert');
  expect(told).toHaveTextContent('Your session has ended');
  expect(within(told).getByRole('link', { name: 'Sign in again' })).toHaveAttribute(
    'href',
    '/auth/sign-in?return=%2F',
  );
});
