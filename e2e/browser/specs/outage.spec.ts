import { faultsOf } from '../looks.ts';
import { COMPLETE, makeWorkspace, part, progress, remove } from '../pages.ts';
import { apiServer, cloud, crossplane, existing } from '../plane.ts';
import { eventually, expect, test } from '../people.ts';

test('a watched environment shows its progress again when the API server is back', async ({ ada }) => {
  await cloud.treats('lab', 'Instance', { unavailable: 'not yet' });
  await makeWorkspace(ada, 'lab');
  await eventually(part(ada, 'Instance')).toHaveText(/^Unavailable/);
  const loaded = await ada.evaluate(() => performance.timeOrigin);

  await apiServer.stop();
  await eventually(ada.getByText('No live updates')).toBeVisible();
  await expect(part(ada, 'Instance')).toHaveText(/^Unavailable/);

  await apiServer.start();
  await eventually(ada.getByText('No live updates')).toBeHidden();
  await cloud.relents('lab', 'Instance');
  await eventually(progress(ada)).toHaveAccessibleName(COMPLETE);
  expect(await ada.evaluate(() => performance.timeOrigin)).toBe(loaded);
});

test('an environment that cannot be deleted during an outage keeps its state', async ({ ada }) => {
  await ada.getByRole('link', { name: 'lab', exact: true }).click();
  await expect(progress(ada)).toHaveAccessibleName(COMPLETE);

  await apiServer.stop();
  await remove(ada, 'lab');
  await expect(ada.getByRole('alert').filter({ hasText: 'We could not confirm that lab is being deleted' })).toBeVisible();
  expect(await faultsOf(ada)).toEqual([]);
  await expect(ada.getByRole('button', { name: 'Delete', exact: true })).toBeEnabled();

  await apiServer.start();
  await eventually(ada.getByText('No live updates')).toBeHidden();
  expect(await existing()).toEqual(['lab']);
  // Until Crossplane receives the deletion, it creates resources again, which would then remain.
  await crossplane.hearsOf('lab');
  await remove(ada, 'lab');
  await eventually(ada.getByRole('heading', { level: 1, name: 'lab was deleted' })).toBeVisible();
  expect(await existing()).toEqual([]);
});
