import { screen } from '@testing-library/react';
import { beforeEach, expect, it, vi } from 'vitest';
import { expectAccessible, open } from './app';
import { World } from './world';

vi.mock('../src/pages/Yaml', () => {
  throw new Error('Failed to fetch dynamically imported module');
});
vi.mock('../src/pages/Create', () => ({
  default: () => {
    throw new Error('no such field');
  },
}));

// React tells the console, too.
beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

const ADA = '/environments/team-vision/gpudevworkspaceclaims.platform.acme.io/ada';

it('a view that does not load says so in its place, and the others are still to be had', async () => {
  const world = new World();
  world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
  const { user } = open(ADA, world);
  await user.click(await screen.findByRole('tab', { name: 'YAML' }));
  expect(await screen.findByRole('alert')).toHaveTextContent('This cannot be shown');
  expect(screen.getByRole('button', { name: 'Try again' })).toBeVisible();
  await expectAccessible();
  await user.click(screen.getByRole('tab', { name: 'Overview' }));
  expect(await screen.findByRole('region', { name: 'What it is made of' })).toBeVisible();
  expect(screen.queryByRole('alert')).toBeNull();
});

it('a page that cannot be drawn says so, and leads on', async () => {
  const { user } = open('/new');
  expect(await screen.findByRole('heading', { level: 1, name: 'Something went wrong' })).toBeVisible();
  expect(screen.getByRole('alert')).toHaveTextContent('no such field');
  await expectAccessible();
  await user.click(screen.getByRole('link', { name: 'SSH keys' }));
  expect(await screen.findByRole('heading', { level: 1, name: 'SSH keys' })).toBeVisible();
});
