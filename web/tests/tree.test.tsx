import { screen, waitFor } from '@testing-library/react';
import { expect, it } from 'vitest';
import { kindPath } from '../src/kinds/known';
import { open } from './app';
import { kindOf } from './data';
import { World } from './world';

it('a tree unfolds helpers of which one fails, and leaves them so when that is mended', async () => {
  const world = new World();
  const view = world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
  const helper = { slot: 'usage-network', kind: 'Usage', ready: false, reason: 'Failed', message: 'no such subnet', since: new Date().toISOString() };
  world.change(view, { parts: [...view.parts, helper] });
  open(`/environments/team-vision/${kindPath(kindOf('gpu-workspace'))}/ada`, world);
  expect(await screen.findByText('no such subnet')).toBeVisible();
  const helpers = screen.getByText('Order and access').closest('details');
  expect(helpers).toHaveAttribute('open');
  world.change(view, { parts: [...view.parts, { ...helper, ready: true, reason: undefined, message: undefined }] });
  await waitFor(() => expect(screen.queryByText('no such subnet')).toBeNull());
  expect(helpers).toHaveAttribute('open');
});
