import type { Locator } from '@playwright/test';
import { faultsOf } from '../looks.ts';
import { begin, card, change, clipboard, COMPLETE, go, KEY, make, makeWorkspace, open, part, progress, remove, tree } from '../pages.ts';
import { cloud, existing } from '../plane.ts';
import { eventually, expect, signIn, test } from '../people.ts';
import { watch } from '../watch.ts';
import { world } from '../world.ts';

const QUOTA = 'VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 allows';
const IN_USE = 'DependencyViolation: resource sg-0a1b has a dependent object';

test('a failed sign-in shows its reason on a page', async ({ page }) => {
  await page.goto('/auth/callback?error=access_denied');
  await expect(page.getByRole('alert')).toContainText('This browser has no active sign-in');
  await page.getByRole('link', { name: 'Sign in' }).click();
  await expect(page).not.toHaveURL(/callback/);
});

test('a user without a session signs in and returns to the same page', async ({ page }) => {
  await page.goto('/keys');
  await expect(page.getByRole('heading', { level: 1, name: 'Your own environments in minutes' })).toBeVisible();
  await signIn(page, world.ada);
  await expect(page).toHaveURL(/\/keys$/);
});

test('a user without environments sees how to create one', async ({ ada }) => {
  await expect(ada.getByRole('heading', { name: 'No environments yet' })).toBeVisible();
  await ada.getByRole('link', { name: 'Create your first environment' }).click();
  await expect(ada.getByRole('heading', { level: 1, name: 'New environment' })).toBeVisible();
});

test('a saved key appears in the form of the next workspace', async ({ ada }) => {
  await go(ada, 'SSH keys');
  await ada.getByRole('textbox', { name: 'Add a key' }).fill(KEY);
  await ada.getByRole('button', { name: 'Add', exact: true }).click();
  await expect(ada.getByRole('list', { name: 'Your keys' })).toContainText('ada@laptop');
  await begin(ada, { title: 'GPU workspace' }, 'vision');
  await expect(ada.getByRole('textbox', { name: 'SSH public keys' })).toHaveValue(KEY);
});

test('a workspace becomes ready resource by resource', async ({ ada }) => {
  await cloud.treats('vision', 'Role', { unavailable: 'not yet' });
  await cloud.treats('vision', 'Instance', { unavailable: 'not yet' });
  const cameUp = await watch(ada);
  await makeWorkspace(ada, 'vision');
  await eventually(part(ada, 'Security group')).toHaveText(/^Ready/);
  await eventually(part(ada, 'Instance')).toHaveText(/^Unavailable/);
  await eventually(part(ada, 'Role')).toHaveText(/^Unavailable/);

  await cloud.relents('vision', 'Role');
  await eventually(part(ada, 'Role')).toHaveText(/^Ready/);
  await expect(part(ada, 'Instance')).toHaveText(/^Unavailable/);
  await expect(progress(ada)).not.toHaveAccessibleName(COMPLETE);

  await cloud.relents('vision', 'Instance');
  await eventually(part(ada, 'Instance')).toHaveText(/^Ready/);
  await cameUp();
  await expect(ada.getByRole('region', { name: 'Timeline' })).toContainText('All resources are ready');
});

test('the command that connects to a workspace is copied', async ({ ada }) => {
  await open(ada, 'vision');
  const connect = ada.getByRole('region', { name: 'Connect' });
  await connect.getByRole('button', { name: 'Copy the address' }).click();
  await expect.poll(() => clipboard(ada)).toMatch(/^ssh developer@[\d.]+$/);
  await expect(connect).toContainText(await clipboard(ada));
});

test.describe('each kind has a preview, and becomes ready resource by resource', () => {
  test('an application environment', async ({ ada }) => {
    await begin(ada, { title: 'Application environment' }, 'shop');
    await ada.getByRole('combobox', { name: 'Node size' }).selectOption('small');
    const preview = ada.getByRole('region', { name: 'Preview' });
    await expect(preview).toContainText(/Creates \d+ resources/);
    await expect(preview.getByRole('list', { name: 'Resources' })).toContainText('Bucket');
    await cloud.treats('shop', 'Cluster', { unavailable: 'not yet' });
    const cameUp = await watch(ada);
    await make(ada, 'shop');
    await eventually(part(ada, 'Database user')).toHaveText(/^Ready/);
    await eventually(part(ada, 'GKE cluster')).toHaveText(/^Unavailable/);
    await cloud.relents('shop', 'Cluster');
    await cameUp();
  });

  test('a unified environment', async ({ ada }) => {
    await begin(ada, { title: 'Unified environment' }, 'checkout');
    await ada.getByRole('textbox', { name: 'Image' }).fill('ghcr.io/acme/checkout:1.4.2');
    await ada.getByRole('combobox', { name: 'Size' }).selectOption('medium');
    await ada.getByRole('textbox', { name: 'App name' }).fill('checkout');
    await cloud.treats('checkout', 'Distribution', { unavailable: 'not yet' });
    const cameUp = await watch(ada);
    await make(ada, 'checkout');
    await eventually(part(ada, 'Backend deployment')).toHaveText(/^Ready/);
    await eventually(part(ada, 'Frontend site')).toHaveText(/^Unavailable/);
    await cloud.relents('checkout', 'Distribution');
    await cameUp();
  });

  test('a GPU stock pool that fits on no node at first', async ({ ada }) => {
    await begin(ada, { title: 'GPU stock pool' }, 'render');
    await ada.getByRole('textbox', { name: 'Spec name' }).fill('g1.1');
    await ada.getByRole('textbox', { name: 'Memory' }).fill('5Ti');
    await ada.getByRole('spinbutton', { name: 'Replicas' }).fill('2');
    const cameUp = await watch(ada);
    await make(ada, 'render');
    await eventually(part(ada, 'Deployment')).toHaveText(/^Creating.*0 of 2 replicas are available/);
    await change(ada, 'Memory', '16Gi');
    await cameUp();
  });

  test('a virtual environment, with an app inside', async ({ ada }) => {
    await begin(ada, { title: 'Virtual environment' }, 'preview');
    await ada.getByRole('switch', { name: 'App', exact: true }).press('Space');
    const chart = ada.getByRole('group', { name: 'Chart' });
    await chart.getByRole('textbox', { name: 'Repository' }).fill('https://stefanprodan.github.io/podinfo');
    await chart.getByRole('textbox', { name: 'Name' }).fill('podinfo');
    await chart.getByRole('textbox', { name: 'Version' }).fill('6.9.2');
    const cameUp = await watch(ada);
    await make(ada, 'preview');
    await cameUp();
  });

  test('all environments become ready', async ({ ada }) => {
    for (const name of ['vision', 'shop', 'checkout', 'render', 'preview']) {
      await eventually(card(ada, name).getByRole('progressbar')).toHaveAccessibleName(COMPLETE);
      await eventually(card(ada, name).getByText('Ready', { exact: true })).toBeVisible();
    }
    expect((await existing()).sort()).toEqual(['checkout', 'preview', 'render', 'shop', 'vision']);
  });
});

test('a card shows to the second when its environment was created', async ({ ada }) => {
  const made = card(ada, 'shop').getByRole('time');
  await made.scrollIntoViewIfNeeded();
  const isOnTop = (element: Element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2) === element;
  };
  expect(await made.evaluate(isOnTop)).toBe(true);
  await expect(made).toHaveAttribute('title', /\d\d:\d\d:\d\d/);
});

test('a secret is shown only on request', async ({ ada }) => {
  await open(ada, 'shop');
  const connect = ada.getByRole('region', { name: 'Connect' });
  await expect(connect).not.toContainText('db_password');
  await connect.getByRole('button', { name: 'Show', exact: true }).click();
  await connect.getByText('All values').click();
  await connect.getByRole('button', { name: 'Copy db_password' }).click();
  await expect.poll(() => clipboard(ada)).toMatch(/^\S{12,}$/);
  const secret = await clipboard(ada);
  await expect(connect).not.toContainText(secret);
  await connect.getByRole('button', { name: 'Show secrets' }).click();
  await expect(connect).toContainText(secret);
  await connect.getByRole('button', { name: 'Hide', exact: true }).click();
  await expect(connect).not.toContainText(secret);
});

test('a refused resource shows the message of its cloud, and recovers', async ({ ada }) => {
  await cloud.treats('large', 'Instance', { create: QUOTA });
  await makeWorkspace(ada, 'large', 'platform.m.acme.io');
  await eventually(part(ada, 'Instance')).toHaveText(/^Failed/);
  await expect(part(ada, 'Instance')).toContainText(QUOTA);
  expect(await faultsOf(ada)).toEqual([]);
  await expect(ada.getByRole('main').getByRole('status').filter({ hasText: /quota exceeded/i })).toBeVisible();
  await go(ada, 'Operations');
  const causes = ada.getByRole('region', { name: 'Failing' });
  await expect(causes).toContainText(QUOTA);
  await causes.getByRole('link', { name: '/large' }).click();

  await cloud.relents('large', 'Instance');
  await eventually(part(ada, 'Instance')).toHaveText(/^Ready/);
  await eventually(progress(ada)).toHaveAccessibleName(COMPLETE);
  await expect(ada.getByText(/VcpuLimitExceeded|quota exceeded/i)).toHaveCount(0);
});

test('every page is accessible in light and dark, on a phone and on a laptop', async ({ ada }) => {
  const main = ada.getByRole('main');
  const looks = async (path: string, shown: Locator) => {
    await ada.goto(path);
    await expect(shown.first()).toBeVisible();
    expect(await faultsOf(ada)).toEqual([]);
  };
  await looks('/', card(ada, 'vision'));
  await looks('/?owner=*&view=table', main.getByRole('columnheader', { name: 'Resources', exact: true }));
  await looks('/?q=nothing', main.getByRole('heading', { name: 'No matches' }));
  await looks('/new', main.getByRole('link', { name: 'GPU workspace' }));
  await looks('/keys', main.getByRole('textbox', { name: 'Add a key' }));
  await looks('/operations', main.getByRole('region', { name: 'Table of tenants' }));
  await looks('/nowhere', main.getByRole('heading', { level: 1 }));
  await looks('/new?kind=gpudevworkspaceclaims.platform.acme.io', main.getByText(/Creates \d+ resources/));

  await open(ada, 'large');
  const path = new URL(ada.url()).pathname;
  await looks(path, part(ada, 'Instance'));
  await looks(`${path}?tab=change`, main.getByRole('button', { name: 'Save changes' }));
  await looks(`${path}?tab=yaml`, main.getByText(/kind: GpuDevWorkspace/));
  await ada.getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(ada.getByRole('dialog', { name: 'Delete large?' }).getByRole('textbox')).toBeFocused();
  expect(await faultsOf(ada)).toEqual([]);
});

test('a changed number of replicas takes effect', async ({ ada }) => {
  await open(ada, 'render');
  await change(ada, 'Replicas', '3');
  await eventually(ada.getByRole('region', { name: 'Connect' })).toContainText(/Available\s*3/);
});

test('a page reports that it is offline, and catches up later', async ({ ada, another, complaints }) => {
  await open(ada, 'render');
  const replicas = ada.getByRole('region', { name: 'Connect' });
  await ada.context().setOffline(true);
  await expect(ada.getByText('You are offline')).toBeVisible();
  expect(await faultsOf(ada)).toEqual([]);

  await ada.getByRole('tab', { name: 'YAML' }).click();
  await expect(ada.getByRole('alert').filter({ hasText: 'Could not load this section' })).toContainText('You are offline');
  await expect(ada.getByRole('button', { name: 'Try again' })).toHaveCount(0);
  await ada.getByRole('tab', { name: 'Overview' }).click();
  // The browser reports the failure on its console, too.
  expect(complaints.splice(0).join()).toContain('dynamically imported module');

  const laptop = await another('ada');
  await open(laptop, 'render');
  await change(laptop, 'Replicas', '1');
  await eventually(laptop.getByRole('region', { name: 'Connect' })).toContainText(/Available\s*1/);
  await expect(replicas).toContainText(/Available\s*3/);

  await ada.context().setOffline(false);
  await expect(ada.getByText('You are offline')).toBeHidden();
  await expect(replicas).toContainText(/Available\s*1/);

  await ada.getByRole('tab', { name: 'YAML' }).click();
  await ada.getByRole('button', { name: 'Try again' }).click();
  await expect(ada.locator('pre', { hasText: 'kind: ' })).toBeVisible();
  expect(complaints.splice(0).join()).toContain('dynamically imported module');
});

test('environments of another team are hidden', async ({ ada, bob }) => {
  await bob.goto('/?owner=*');
  const count = bob.getByRole('main').getByRole('status').filter({ hasText: /environments?$/ });
  await expect(count).toHaveText('0 environments');
  await begin(ada, { title: 'GPU stock pool', group: 'platform.m.acme.io' }, 'mine');
  await ada.getByRole('textbox', { name: 'Spec name' }).fill('g1.1');
  await ada.getByRole('spinbutton', { name: 'Replicas' }).fill('1');
  await make(ada, 'mine');
  await eventually(progress(ada)).toHaveAccessibleName(COMPLETE);
  await expect(count).toHaveText('0 environments');

  await bob.goto(new URL(ada.url()).pathname);
  await expect(bob.getByRole('alert')).toContainText('Could not load this environment');

  await begin(bob, { title: 'GPU stock pool', group: 'platform.m.acme.io' }, 'theirs');
  await bob.getByRole('textbox', { name: 'Spec name' }).fill('g1.1');
  await bob.getByRole('spinbutton', { name: 'Replicas' }).fill('1');
  await make(bob, 'theirs');
  await eventually(progress(bob)).toHaveAccessibleName(COMPLETE);
  await go(bob, 'Operations');
  await expect(bob.getByRole('region', { name: 'Table of tenants' }).getByRole('rowheader')).toHaveText([/music/]);
  await ada.goto('/?owner=*');
  await expect(card(ada, 'mine')).toBeVisible();
  await expect(card(ada, 'theirs')).toHaveCount(0);

  await open(bob, 'theirs');
  await remove(bob, 'theirs');
  await eventually(bob.getByRole('heading', { level: 1, name: 'theirs was deleted' })).toBeVisible();
});

test('an environment is deleted only after its name was typed, resource by resource', async ({ ada }) => {
  await cloud.treats('vision', 'SecurityGroup', { delete: IN_USE });
  await open(ada, 'vision');
  await expect(part(ada, 'Instance')).toBeVisible();
  await ada.getByRole('button', { name: 'Delete', exact: true }).click();
  const confirm = ada.getByRole('dialog', { name: 'Delete vision?' });
  await expect(confirm.getByRole('button', { name: 'Delete environment' })).toBeDisabled();
  await confirm.getByRole('textbox', { name: /^Type .* to confirm/ }).fill('visio');
  await expect(confirm.getByRole('button', { name: 'Delete environment' })).toBeDisabled();
  await confirm.getByRole('textbox', { name: /^Type .* to confirm/ }).fill('vision');
  await confirm.getByRole('button', { name: 'Delete environment' }).click();

  await expect(ada.getByRole('heading', { name: 'Still being deleted' })).toBeVisible();
  await expect(ada.getByRole('button', { name: 'Being deleted' })).toBeDisabled();
  await eventually(tree(ada).getByText('Instance', { exact: true })).toHaveCount(0);
  await eventually(part(ada, 'Security group')).toContainText(IN_USE);
  expect(await faultsOf(ada)).toEqual([]);
  await expect(progress(ada)).toHaveAccessibleName(/^([1-9]\d*) of (?!\1 )\d+ resources deleted$/);
  expect(await existing()).toContain('vision');

  await cloud.relents('vision', 'SecurityGroup');
  await eventually(ada.getByRole('heading', { level: 1, name: 'vision was deleted' })).toBeVisible();
  expect(await existing()).not.toContain('vision');
});

test('the other environments are deleted, and the list is empty again', async ({ ada }) => {
  for (const name of ['shop', 'checkout', 'render', 'preview', 'large', 'mine']) {
    await open(ada, name);
    await remove(ada, name);
    // An environment with few resources may be gone before the button is drawn.
    const gone = ada.getByRole('heading', { level: 1, name: `${name} was deleted` });
    await expect(ada.getByRole('button', { name: 'Being deleted' }).or(gone)).toBeVisible();
  }
  await go(ada, 'Environments');
  await eventually(ada.getByRole('heading', { name: 'No environments yet' })).toBeVisible();
  expect(await existing()).toEqual([]);
});

test('a sign-out ends the session in every tab', async ({ page, context }) => {
  await page.goto('/');
  await signIn(page, world.ada);
  const tab = await context.newPage();
  await tab.goto('/keys');
  await expect(tab.getByRole('list', { name: 'Your keys' })).toContainText('ada@laptop');

  const loaded = page.waitForEvent('load');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await loaded;
  await expect(page.getByRole('link', { name: 'Sign in' })).toBeVisible();
  expect(await faultsOf(page)).toEqual([]);
  await expect(page.getByText(world.ada.login)).toHaveCount(0);
  await expect(tab.getByText('You signed out in another tab.')).toBeVisible();
  await expect(tab.getByText('ada@laptop')).toHaveCount(0);
  await tab.reload();
  await expect(tab.getByRole('link', { name: 'Sign in' })).toBeVisible();
});
