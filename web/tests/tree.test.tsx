import { render, screen, waitFor } from '@testing-library/react';
import { MantineProvider } from '@mantine/core';
import { expect, it } from 'vitest';
import type { Part } from '../src/api/schema';
import { kindPath } from '../src/kinds/metadata';
import { Tree } from '../src/components/Tree';
import { open } from './app';
import { causeOf, kindOf } from './data';
import { World } from './world';

it('a tree unfolds helpers with a failure, and keeps them unfolded after the repair', async () => {
  const world = new World();
  const view = world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
  const helper = {
    slot: 'usage-network',
    kind: 'Usage',
    ready: false,
    reason: 'Failed',
    message: 'no such subnet',
    since: new Date().toISOString(),
  };
  world.change(view, { parts: [...view.parts, helper] });
  open(`/environments/team-vision/${kindPath(kindOf('gpu-workspace'))}/ada`, world);
  expect(await screen.findByText('no such subnet')).toBeVisible();
  const helpers = screen.getByText(/internal resources?/).closest('details');
  expect(helpers).toHaveAttribute('open');
  world.change(view, {
    parts: [...view.parts, { ...helper, ready: true, reason: undefined, message: undefined }],
  });
  await waitFor(() => expect(screen.queryByText('no such subnet')).toBeNull());
  expect(helpers).toHaveAttribute('open');
});

it('a part keeps its lines during its creation, and only a failure takes more room', () => {
  const since = new Date().toISOString();
  const role: Part = {
    slot: 'role',
    kind: 'Role',
    name: 'ada-role',
    ready: false,
    reason: 'Creating',
    message: 'is being created',
    since,
  };
  const tree = (part: Part) => (
    <MantineProvider>
      <Tree parts={[part]} />
    </MantineProvider>
  );
  const { container, rerender } = render(tree(role));
  const lines = () =>
    [...container.querySelector('.leaf')!.children]
      .map(({ className, tagName, textContent }) => [className || tagName, textContent])
      .slice(1);
  expect(lines()).toEqual([['leaf-line', 'is being created']]);
  expect(screen.getByText('is being created')).toHaveAttribute('title', 'is being created');
  rerender(
    tree({
      ...role,
      externalName: 'ada-5f0c9',
      reason: 'Unavailable',
      message: 'is not available',
    }),
  );
  expect(lines()).toEqual([['leaf-line', 'ada-5f0c9is not available']]);
  rerender(
    tree({
      ...role,
      externalName: 'ada-5f0c9',
      ready: true,
      reason: undefined,
      message: undefined,
    }),
  );
  expect(lines()).toEqual([['leaf-line', 'ada-5f0c9']]);
  rerender(tree({ ...role, ready: true, reason: undefined, message: undefined }));
  expect(lines()).toEqual([['leaf-line', '']]);
  rerender(tree({ ...role, reason: 'Failed', message: 'no such role' }));
  expect(lines()).toEqual([['words', 'no such role']]);
  rerender(tree({ ...role, externalName: 'ada-5f0c9', reason: 'Failed', message: 'no such role' }));
  expect(lines()).toEqual([
    ['leaf-line', 'ada-5f0c9'],
    ['words', 'no such role'],
  ]);
  const failed = {
    ...role,
    reason: 'Failed',
    message: 'no such role',
    cause: causeOf('AccessDenied'),
  };
  rerender(tree(failed));
  expect(lines()).toEqual([
    ['cause-words', 'Access denied. What helps: Access denied.'],
    ['more', 'Message of the providerno such role'],
  ]);
  rerender(tree({ ...failed, reason: 'Waiting', cause: causeOf('WaitsFor') }));
  expect(lines()).toEqual([['leaf-line', 'Waits for']]);
});
