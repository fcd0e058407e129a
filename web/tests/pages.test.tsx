import type { UserEvent } from '@testing-library/user-event';
import { act, screen, waitFor, within } from '@testing-library/react';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { expectAccessible, open } from './app';
import { kindOf } from './data';
import { World } from './world';

const G = 'platform.acme.io';
const ADA = `/environments/team-vision/gpudevworkspaceclaims.${G}/ada`;

/** Long enough to render the messages that were sent. */
const settle = () => act(() => new Promise((resolve) => setTimeout(resolve, 300)));

function peopled(): World {
  const world = new World();
  const createdAt = new Date(Date.now() - 2.5 * 3_600_000).toISOString();
  world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', createdAt });
  world.add('gpu-workspace', { name: 'broken', namespace: 'team-vision', stage: 'failing' });
  world.add('gpu-workspace', {
    name: 'grace',
    namespace: 'team-robotics',
    stage: 'failing',
    owner: 'grace@acme.io',
  });
  world.add('virtual-environment', { name: 'preview', namespace: 'team-shop', stage: 'half-way' });
  return world;
}

/** Opens all values of the connection details, with the secrets among them. */
async function reveal(user: UserEvent): Promise<void> {
  await user.click(await screen.findByText('All values'));
  await user.click(screen.getByRole('button', { name: 'Show secrets' }));
}

describe('my environments', () => {
  it('shows mine, with state, progress, age and address', async () => {
    open('/', peopled());
    const card = (await screen.findByRole('link', { name: 'ada' })).closest('li')!;
    expect(within(card).getByText('Ready')).toBeVisible();
    expect(within(card).getByRole('progressbar', { name: '7 of 7 resources ready' })).toBeVisible();
    expect(within(card).getByText('ssh developer@198.51.100.27')).toBeVisible();
    expect(within(card).getByText('2 hr ago')).toHaveAttribute('title');
    // The link covers the card. Its tooltip shows the message, which may be cut.
    expect(within(card).getByRole('link', { name: 'ada' })).toHaveAttribute(
      'title',
      'all 7 resources are ready',
    );
    expect(within(card).getByText('all 7 resources are ready')).not.toHaveAttribute('title');
    expect(within(card).getByRole('button', { name: 'Copy the address of ada' })).toBeVisible();
    expect(screen.queryByRole('link', { name: 'grace' })).toBeNull();
    expect(screen.getByText('3 environments')).toBeVisible();
    await expectAccessible();
  });

  it('keeps filters in the URL', async () => {
    const { user } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    await user.selectOptions(screen.getByLabelText('Owner'), '*');
    await user.selectOptions(screen.getByLabelText('State'), 'Failed');
    expect(
      (await screen.findAllByRole('heading', { level: 2 }))
        .map((heading) => heading.textContent)
        .sort(),
    ).toEqual(['broken', 'grace']);
    expect(new URLSearchParams(window.location.search).get('owner')).toBe('*');
    // The search finds kinds by their displayed titles.
    await user.type(screen.getByLabelText('Search'), 'gpu workspace grace');
    await waitFor(() => expect(screen.getByText('1 environment')).toBeVisible());
    await user.click(screen.getByLabelText('Table'));
    expect(await screen.findByRole('columnheader', { name: 'Resources' })).toBeVisible();
    expect(window.location.search).toBe('?owner=*&phase=Failed&q=gpu+workspace+grace&view=table');
    await expectAccessible();
  });

  it('distinguishes two kinds with the same title', async () => {
    const world = new World();
    world.add('stock-pool', { name: 'render', namespace: 'team-vision' });
    world.others.push(kindOf('stock-pool', 'namespaced'));
    world.add('stock-pool', {
      name: 'nightly',
      namespace: 'team-shop',
      apiVersion: 'platform.m.acme.io/v1alpha1',
    });
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
    const { user } = open('/', world);
    await screen.findByRole('link', { name: 'nightly' });
    const kinds = screen.getByLabelText<HTMLSelectElement>('Kind');
    expect([...kinds.options].map(({ text }) => text)).toEqual([
      'All kinds',
      'GPU workspace',
      `GPU stock pool (${G})`,
      'GPU stock pool (platform.m.acme.io)',
    ]);
    await user.selectOptions(kinds, 'GPU stock pool (platform.m.acme.io)');
    await waitFor(() => expect(screen.queryByRole('link', { name: 'render' })).toBeNull());
    expect(screen.getByRole('link', { name: 'nightly' })).toBeVisible();
  });

  it('reads filters from the URL', async () => {
    open('/?owner=grace%40acme.io', peopled());
    await screen.findByRole('link', { name: 'grace' });
    expect(screen.queryByRole('link', { name: 'ada' })).toBeNull();
  });

  it('helps on an empty page', async () => {
    const { user } = open('/');
    expect(await screen.findByText('No environments yet')).toBeVisible();
    await expectAccessible();
    await user.click(screen.getByRole('link', { name: 'Create your first environment' }));
    expect(await screen.findByText('A GPU machine with Python and OpenCV.')).toBeVisible();
    await expectAccessible();
  });
});

describe('one environment', () => {
  it('explains a failure in the provider’s own words', async () => {
    open(`/environments/team-vision/gpudevworkspaceclaims.${G}/broken`, peopled());
    const parts = await screen.findByRole('region', { name: 'Resources' });
    const words = within(parts).getByText(/VcpuLimitExceeded: You have requested more vCPU capac/);
    // The cause comes first. The provider's long message is one click away.
    expect(words.closest('details')).not.toHaveAttribute('open');
    // The cause is shown at the top of the page and at the resource.
    expect(screen.getAllByText(/^What helps: /)).not.toHaveLength(0);
    expect(within(parts).getByText(/What helps: /)).toBeVisible();
    await expectAccessible();
  });

  it('shows each part as it becomes ready', async () => {
    const world = new World();
    const view = world.add('gpu-workspace', {
      name: 'ada',
      namespace: 'team-vision',
      stage: 'half-way',
    });
    open(ADA, world);
    const state = (slot: string) =>
      screen.getByText(slot, { selector: '.leaf-name' }).closest('.leaf-head')!;
    await waitFor(() => expect(state('Instance')).toHaveTextContent('Creating'));
    world.change(view, {
      parts: view.parts.map((part) => ({
        ...part,
        ready: true,
        reason: undefined,
        message: undefined,
      })),
    });
    await waitFor(() => expect(state('Instance')).toHaveTextContent('Ready'));
  });

  it('keeps room for its address, and keeps buttons in place', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', stage: 'half-way' });
    open(ADA, world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(within(connect).getByText('No address yet.').closest('.address')).toBeVisible();
    const outputs = within(connect).getByRole('heading', { name: 'Outputs' });
    expect(
      outputs.compareDocumentPosition(within(connect).getByRole('button', { name: 'Show' })),
    ).toBe(Node.DOCUMENT_POSITION_PRECEDING);
  });

  it('shows the command for the user’s machine, without links into the cluster', async () => {
    const world = new World();
    const addresses = [
      'https://preview-x.team-preview.svc',
      'https://10.1.2.3:6443',
      'https://api.preview.svc.cluster.local',
      'https://[fd00::1]',
    ];
    const view = world.add('virtual-environment', { name: 'preview', namespace: 'team-shop' });
    open(`/environments/team-shop/environments.${G}/preview`, world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(connect).toHaveTextContent('paved connect preview -n team-shop');
    for (const endpoint of addresses) {
      act(() => void world.change(view, { endpoint }));
      expect(await within(connect).findByText(endpoint)).toBeVisible();
      expect(within(connect).queryByRole('link')).toBeNull();
      expect(
        within(connect).getByText('The address is reachable from inside the cluster only.'),
      ).toBeVisible();
    }
    act(() => void world.change(view, { endpoint: 'https://shop.apps.acme.io' }));
    expect(
      await within(connect).findByRole('link', { name: 'https://shop.apps.acme.io' }),
    ).toBeVisible();
    expect(within(connect).queryByText(/inside the cluster only/)).toBeNull();
    await expectAccessible();
  });

  it('reports that SSH is closed, and links to the field that opens it', async () => {
    const world = new World();
    const view = world.add('gpu-workspace', {
      name: 'ada',
      namespace: 'team-vision',
      endpoint: 'aws ssm start-session --target i-0abc --region eu-west-1',
      sshClosed: true,
    });
    const { user } = open(ADA, world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(within(connect).getByText(/SSH is closed: no network is allowed\./)).toBeVisible();
    await user.click(within(connect).getByRole('link', { name: 'Change › Allowed CIDRs' }));
    expect(await screen.findByLabelText(/^Allowed CIDRs/)).toBeVisible();
    await user.click(screen.getByRole('tab', { name: 'Overview' }));
    act(
      () => void world.change(view, { endpoint: 'ssh developer@203.0.113.24', sshClosed: false }),
    );
    await waitFor(() => expect(screen.queryByText(/SSH is closed/)).toBeNull());
  });

  it('reports a workspace without an SSH key', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', sshKeyless: true });
    open(ADA, world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(within(connect).getByText(/No SSH key: connect by AWS Session Manager/)).toBeVisible();
    expect(
      within(connect).getByRole('link', { name: 'Add a key for new workspaces' }),
    ).toBeVisible();
  });

  it('fetches secrets only on a click, and removes them when hidden', async () => {
    const { world, user } = open(ADA, peopled());
    const show = await screen.findByRole('button', { name: 'Show' });
    expect(world.asked.filter((one) => one.includes('connection'))).toEqual([]);
    await user.click(show);
    await reveal(user);
    expect(await screen.findByText('correct-horse-battery')).toBeVisible();
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Hide' }));
    expect(screen.queryByText('correct-horse-battery')).toBeNull();
    expect(world.asked.filter((one) => one.includes('connection'))).toHaveLength(1);
  });

  it.each(['expired', 'signed-out'])(
    'shows no secret after the end of the session (%s)',
    async (reason) => {
      const { world, user } = open(ADA, peopled());
      await user.click(await screen.findByRole('button', { name: 'Show' }));
      await reveal(user);
      await screen.findByText('correct-horse-battery');
      world.me = undefined;
      world.reset(reason);
      await waitFor(() => expect(document.body).not.toHaveTextContent('correct-horse-battery'));
    },
  );

  it('shows the server’s message if secrets are forbidden', async () => {
    const { world, user } = open(ADA, peopled());
    world.refuse('POST', /connection$/, { status: 403, detail: 'secrets "ada-conn" is forbidden' });
    await user.click(await screen.findByRole('button', { name: 'Show' }));
    expect(await screen.findByText('secrets "ada-conn" is forbidden')).toBeVisible();
  });

  it('reports missing secrets without an error', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', stage: 'nothing' });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Show' }));
    expect(
      await screen.findByText('There is no Secret ada-conn with connection details yet.'),
    ).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
  });

  it('shows the object as YAML', async () => {
    open(`${ADA}?tab=yaml`, peopled());
    expect(await screen.findByText(/kind: GpuDevWorkspaceClaim/)).toBeVisible();
    await expectAccessible();
  });

  it('reports a deletion after it is complete', async () => {
    const world = peopled();
    open(ADA, world);
    await screen.findByRole('region', { name: 'Resources' });
    world.remove([...world.environments.values()][0]!.view);
    expect(await screen.findByRole('heading', { name: 'ada was deleted' })).toBeVisible();
  });

  it('does not call a hidden environment deleted', async () => {
    const world = peopled();
    open(ADA, world);
    await screen.findByRole('region', { name: 'Resources' });
    world.unlisted.add('team-vision');
    world.refuse('GET', /ada$/, {
      status: 403,
      detail: 'gpudevworkspaceclaims "ada" is forbidden',
    });
    world.restart();
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'Could not load this environmentgpudevworkspaceclaims "ada" is forbidden',
    );
    expect(screen.queryByText(/was deleted/)).toBeNull();
  });

  it('polls an environment without the right to list, and deletes it', async () => {
    const world = peopled();
    world.unlisted.add('team-vision');
    const { user } = open(ADA, world);
    await screen.findByRole('region', { name: 'Resources' });
    expect(await screen.findByText(/No live updates for this environment/)).toBeVisible();
    await expectAccessible();
    const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    world.change(view, { message: 'something new' });
    expect(await screen.findByText('something new')).toBeVisible();
    // A new snapshot contains only environments that the user may list.
    world.restart();
    world.change(view, { message: 'something newer' });
    expect(await screen.findByText('something newer')).toBeVisible();
    // After the snapshot, the environment must be read again. If that fails, the page shows the
    // reason until a read succeeds, without flicker.
    world.refuse('GET', /ada$/, { status: 502, detail: 'away', lasts: true });
    world.restart();
    expect(await screen.findByText('away')).toBeVisible();
    const told = screen.getByRole('alert');
    world.relent();
    world.refuse('GET', /ada$/, { status: 502, detail: 'still away', lasts: true });
    expect(await screen.findByText('still away')).toBeVisible();
    expect(told).toBeInTheDocument();
    // A new snapshot after failed reads does not contain the environment either.
    world.relent();
    world.restart();
    world.change(view, { message: 'the newest' });
    expect(await screen.findByText('the newest')).toBeVisible();
    await user.click(screen.getByRole('button', { name: 'Delete' }));
    await user.type(await screen.findByLabelText(/^Type .* to confirm/), 'ada');
    await user.click(screen.getByRole('button', { name: 'Delete environment' }));
    expect(await screen.findByRole('button', { name: 'Being deleted' })).toBeDisabled();
    world.remove(view);
    expect(await screen.findByRole('heading', { name: 'ada was deleted' })).toBeVisible();
  });

  it('is removed after the page closes if it was only read, so that no list shows it', async () => {
    const world = peopled();
    world.unlisted.add('team-vision');
    const { user } = open(ADA, world);
    await screen.findByRole('region', { name: 'Resources' });
    await user.click(screen.getByRole('link', { name: 'Environments', current: 'page' }));
    expect(await screen.findByRole('link', { name: 'preview' })).toBeVisible();
    await waitFor(() => expect(screen.queryByRole('link', { name: 'ada' })).toBeNull());
    expect(screen.getByText('1 environment')).toBeVisible();
  });

  it('keeps the focus when its data arrives', async () => {
    open('/nowhere').unmount();
    const scrolled = vi.spyOn(window, 'scrollTo');
    open(ADA, peopled());
    await screen.findByRole('region', { name: 'Resources' });
    expect(scrolled).toHaveBeenCalledTimes(1);
  });

  it('reports a missing environment', async () => {
    open(`/environments/team-vision/gpudevworkspaceclaims.${G}/nobody`, peopled());
    expect(await screen.findByRole('heading', { name: 'nobody does not exist' })).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
    await expectAccessible();
  });
});

describe('deleting', () => {
  /** Confirms the deletion. The response is held back. */
  const ask = async (refusal?: string) => {
    const opened = open(ADA, peopled());
    if (refusal) opened.world.refuse('DELETE', /ada$/, { status: 403, detail: refusal });
    await opened.user.click(await screen.findByRole('button', { name: 'Delete' }));
    const dialog = await screen.findByRole('dialog', { name: 'Delete ada?' });
    const sure = within(dialog).getByRole('button', { name: 'Delete environment' });
    expect(sure).toBeDisabled();
    await expectAccessible();
    await opened.user.type(within(dialog).getByLabelText(/^Type .* to confirm/), 'ada');
    let answer = () => {};
    opened.world.held = new Promise((resolve) => (answer = resolve));
    await opened.user.click(sure);
    return { ...opened, answer };
  };

  it('shows a deletion at once, with the remaining resources', async () => {
    const { world, answer } = await ask();
    expect(await screen.findByRole('button', { name: 'Being deleted' })).toBeDisabled();
    expect(screen.getByRole('progressbar', { name: '0 of 7 resources deleted' })).toBeVisible();
    expect(world.asked).toContain(
      `DELETE /api/v1/environments/team-vision/gpudevworkspaceclaims.${G}/ada`,
    );
    expect(
      world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!.view.deletedAt,
    ).toBeUndefined();
    answer();
    const view = await waitFor(() => {
      const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
      expect(view.deletedAt).toBeTruthy();
      return view;
    });
    world.change(view, {
      parts: view.parts.slice(0, 1),
      progress: '6/7',
      message: 'is being deleted: 1 of 7 resources are left',
    });
    const left = await screen.findByRole('region', { name: 'Still being deleted' });
    await waitFor(() => expect(within(left).getAllByRole('listitem')).toHaveLength(1));
    expect(screen.getByRole('progressbar', { name: '6 of 7 resources deleted' })).toBeVisible();
  });

  it('lists deleted and kept resources, and the kept ones afterwards', async () => {
    const world = peopled();
    const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    world.change(view, {
      onDeletion: {
        deletes: [
          { slot: 'postgres-instance', kind: 'Instance', name: 'shop-db', hasData: true },
          { slot: 'role', kind: 'Role', hasData: false },
        ],
        keeps: [
          {
            slot: 'frontend-bucket',
            kind: 'Bucket',
            name: 'acme-mfe-shop-90b7064b',
            until: 'deleted by hand',
          },
          {
            slot: 'postgres-instance',
            kind: 'Snapshot',
            name: 'shop-db-final',
            until: 'deleted by hand',
          },
        ],
      },
    });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Delete' }));
    const dialog = await screen.findByRole('dialog', { name: 'Delete ada?' });
    expect(within(dialog).getByRole('list', { name: 'Deleted with all data' })).toHaveTextContent(
      /^PostgreSQL instance shop-db$/,
    );
    expect(dialog).toHaveTextContent('Also deleted: 1 other resource.');
    const kept = within(dialog).getByRole('list', { name: 'Kept, and billed while it exists' });
    expect(
      within(kept)
        .getAllByRole('listitem')
        .map((one) => one.textContent),
    ).toEqual([
      'Frontend bucket acme-mfe-shop-90b7064b, until deleted by hand',
      'Snapshot of postgres-instance shop-db-final, until deleted by hand',
    ]);
    expect(dialog).not.toHaveTextContent('Everything');
    await expectAccessible();
    await user.type(within(dialog).getByLabelText(/^Type .* to confirm/), 'ada{Enter}');
    await screen.findByRole('button', { name: 'Being deleted' });
    world.remove(view);
    expect(await screen.findByRole('heading', { name: 'ada was deleted' })).toBeVisible();
    expect(
      screen.getByRole('list', { name: 'Kept, and billed while it exists' }),
    ).toHaveTextContent('acme-mfe-shop-90b7064b');
    expect(screen.queryByText(/All of its resources/)).toBeNull();
    await expectAccessible();
  });

  it('makes no promise without a list of kept resources', async () => {
    const world = peopled();
    const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    world.change(view, { onDeletion: undefined, owner: 'grace@acme.io' });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Delete' }));
    const dialog = await screen.findByRole('dialog', { name: 'Delete ada?' });
    expect(dialog).toHaveTextContent(
      'The environment’s resources are deleted. Its template lists the kept resources.',
    );
    expect(dialog).toHaveTextContent('Owner: grace@acme.io.');
    await user.click(within(dialog).getByRole('button', { name: 'Cancel' }));
    world.remove(view);
    expect(
      await screen.findByText('Its resources were deleted. Its template lists the kept resources.'),
    ).toBeVisible();
  });

  it('leaves the form, and shows the remaining resources', async () => {
    const world = peopled();
    open(`${ADA}?tab=change`, world);
    await screen.findByLabelText(/^Instance type/);
    const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    world.change(view, { deletedAt: new Date().toISOString(), phase: 'Deleting' });
    expect(await screen.findByRole('region', { name: 'Still being deleted' })).toBeVisible();
    expect(screen.queryByLabelText(/^Instance type/)).toBeNull();
  });

  it('returns the focus to its button, and to the title after a deletion', async () => {
    const { user } = open(ADA, peopled());
    const button = await screen.findByRole('button', { name: 'Delete' });
    for (const keep of [
      () => user.keyboard('{Escape}'),
      () => user.click(screen.getByRole('button', { name: 'Cancel' })),
    ]) {
      await user.click(button);
      await user.type(await screen.findByLabelText(/^Type .* to confirm/), 'ada');
      await keep();
      await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
      expect(button).toHaveFocus();
    }
    await user.click(button);
    expect(await screen.findByLabelText(/^Type .* to confirm/)).toHaveValue('');
    await user.type(screen.getByLabelText(/^Type .* to confirm/), 'ada{Enter}');
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    expect(screen.getByRole('heading', { level: 1 })).toHaveFocus();
  });

  it('is not called rejected without an answer', async () => {
    const { world, user } = open(ADA, peopled());
    world.refuse('DELETE', /ada$/, { status: 504, detail: 'The request timed out.' });
    await user.click(await screen.findByRole('button', { name: 'Delete' }));
    await user.type(await screen.findByLabelText(/^Type .* to confirm/), 'ada{Enter}');
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'We could not confirm that ada is being deletedThe request timed out.',
    );
  });

  it('is no failure after a faster deletion', async () => {
    const { world, user } = open(ADA, peopled());
    world.refuse('DELETE', /ada$/, {
      status: 404,
      detail: 'gpudevworkspaceclaims "ada" not found',
    });
    await user.click(await screen.findByRole('button', { name: 'Delete' }));
    await user.type(await screen.findByLabelText(/^Type .* to confirm/), 'ada{Enter}');
    expect(await screen.findByText('ada was already deleted')).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
    expect(screen.getByRole('button', { name: 'Being deleted' })).toBeDisabled();
  });

  it('is reverted after a rejection, with the server’s message', async () => {
    const { answer } = await ask(
      'gpudevworkspaceclaims "ada" is forbidden: User "ada" cannot delete',
    );
    expect(await screen.findByRole('button', { name: 'Being deleted' })).toBeDisabled();
    answer();
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'Could not delete adagpudevworkspaceclaims "ada" is forbidden',
    );
    expect(screen.getByRole('button', { name: 'Delete' })).toBeEnabled();
    await expectAccessible();
  });

  it('is also shown on the card until a response rejects it', async () => {
    const { user, answer } = await ask('gpudevworkspaceclaims "ada" is forbidden');
    await user.click(screen.getByRole('link', { name: 'Environments', current: 'page' }));
    const card = (await screen.findByRole('link', { name: 'ada' })).closest('li')!;
    expect(within(card).getByText('Deleting')).toBeVisible();
    expect(
      within(card).getByRole('progressbar', { name: '0 of 7 resources deleted' }),
    ).toBeVisible();
    answer();
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'Could not delete adagpudevworkspaceclaims "ada" is forbidden',
    );
    expect(within(card).getByText('Ready')).toBeVisible();
    expect(within(card).getByRole('progressbar', { name: '7 of 7 resources ready' })).toBeVisible();
  });
});

describe('operations', () => {
  it('groups failures by their cause, across tenants', async () => {
    open('/operations', peopled());
    const failing = await screen.findByRole('region', { name: 'Failing' });
    expect(await within(failing).findByText('2 environments')).toBeVisible();
    expect(within(failing).getAllByText(/VcpuLimitExceeded/)).toHaveLength(1);
    expect(within(failing).getAllByText(/What helps: /)).toHaveLength(1);
    expect(within(failing).getByRole('link', { name: 'team-robotics/grace' })).toBeVisible();
    const tenants = screen.getByRole('region', { name: 'Table of tenants' });
    expect(
      within(tenants).getByRole('row', { name: /team-vision 2 × GPU workspace 1 0 1 0 0/ }),
    ).toBeVisible();
    await expectAccessible();
  });

  it('counts every environment once, also paused and empty ones', async () => {
    const world = peopled();
    world.add('stock-pool', {
      name: 'spare',
      namespace: 'team-vision',
      phase: 'ScaledToZero',
      ready: false,
    });
    open('/operations', world);
    const tenants = await screen.findByRole('region', { name: 'Table of tenants' });
    expect(
      await within(tenants).findByRole('row', { name: /team-vision .* 1 0 1 1 0/ }),
    ).toBeVisible();
    const sums = [...document.querySelectorAll('.sums [data-tone] dd')].map(({ textContent }) =>
      Number(textContent),
    );
    expect(sums.reduce((sum, one) => sum + one, 0)).toBe(world.environments.size);
  });
});

describe('my keys', () => {
  it('adds and removes keys, and explains an invalid key', async () => {
    const { world, user } = open('/keys');
    await screen.findByText('ada@laptop');
    await expectAccessible();
    await user.type(screen.getByLabelText('Add a key'), 'nonsense');
    await user.click(screen.getByRole('button', { name: 'Add' }));
    expect(await screen.findByText(/does not start with a known key type/)).toBeVisible();
    expect(screen.getByLabelText('Add a key')).toHaveAttribute('aria-invalid', 'true');
    await user.clear(screen.getByLabelText('Add a key'));
    await user.type(
      screen.getByLabelText('Add a key'),
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI second@desk',
    );
    await user.click(screen.getByRole('button', { name: 'Add' }));
    expect(await screen.findByText('second@desk')).toBeVisible();
    // One live region announces it once, politely.
    expect(screen.getByText('Your key was added').closest('[role=status]')).toHaveAttribute(
      'aria-atomic',
      'false',
    );
    expect(
      document.querySelector('[aria-live] [role=status], [aria-live] [role=alert]'),
    ).toBeNull();
    await user.click(screen.getByRole('button', { name: 'Remove ada@laptop' }));
    await waitFor(() => expect(screen.queryByText('ada@laptop')).toBeNull());
    expect(screen.getByRole('heading', { level: 1 })).toHaveFocus();
    expect(world.keys).toEqual(['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI second@desk']);
  });

  it('keeps a key of another page, and shows it', async () => {
    const { world, user } = open('/keys');
    await screen.findByText('ada@laptop');
    world.keys = [...world.keys, 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI other@phone'];
    await user.click(screen.getByRole('button', { name: 'Remove ada@laptop' }));
    expect(await screen.findByText('other@phone')).toBeVisible();
    expect(screen.queryByText('ada@laptop')).toBeNull();
    expect(world.keys).toEqual(['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI other@phone']);
  });

  it('reports that a key was not removed, and no error of another key', async () => {
    const { world, user } = open('/keys');
    world.refuse('PUT', /keys$/, { status: 403, detail: 'configmaps is forbidden' });
    await user.click(await screen.findByRole('button', { name: 'Remove ada@laptop' }));
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'Could not remove the keyconfigmaps is forbidden',
    );
    expect(screen.getByText('ada@laptop')).toBeVisible();
    expect(screen.getByLabelText('Add a key')).not.toHaveAttribute('aria-invalid');
  });

  it('neither keeps nor sends a private key that was pasted by mistake', async () => {
    const { world, user } = open('/keys');
    const draft = await screen.findByLabelText('Add a key');
    await user.type(draft, 'ssh-ed25519 AAAA');
    expect(Object.keys(sessionStorage)).toEqual(['paved-kept keys']);
    await user.clear(draft);
    await user.type(draft, '-----BEGIN OPENSSH PRIVATE KEY-----');
    expect(Object.keys(sessionStorage)).toEqual([]);
    expect(draft).toHaveAccessibleDescription(
      /This is a private key\. It has not left this page\./,
    );
    await user.click(screen.getByRole('button', { name: 'Add' }));
    await settle();
    expect(world.asked.filter((one) => one.startsWith('PUT'))).toEqual([]);
    await expectAccessible();
  });

  it('reports an unconfirmed result as unconfirmed', async () => {
    const { world, user } = open('/keys');
    world.refuse('PUT', /keys$/, { status: 502, detail: 'The Kubernetes API does not respond.' });
    await user.click(await screen.findByRole('button', { name: 'Remove ada@laptop' }));
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'We could not confirm that the key was removed',
    );
    await user.type(screen.getByLabelText('Add a key'), world.keys[0]!);
    await user.click(screen.getByRole('button', { name: 'Add' }));
    expect(await screen.findByText('This key is already in your list')).toBeVisible();
  });
});

describe('the user of the page', () => {
  it('is asked to sign in, and returns to the same page', async () => {
    const world = new World();
    world.me = undefined;
    open('/operations?x=1', world);
    expect(await screen.findByRole('link', { name: 'Sign in' })).toHaveAttribute(
      'href',
      '/auth/sign-in?return=%2Foperations%3Fx%3D1',
    );
    await expectAccessible();
  });

  /**
   * The error that the portal writes into the page that it returns instead of the requested one.
   */
  const refuseSignIn = () => {
    const told = document.createElement('script');
    told.type = 'application/json';
    told.id = 'problem';
    told.textContent = JSON.stringify({
      status: 403,
      detail: 'The provider did not sign you in: it says access_denied.',
      requestId: '0a1b',
    });
    document.head.append(told);
    onTestFinished(() => told.remove());
  };

  it('sees why sign-in failed, and can try again', async () => {
    refuseSignIn();
    const world = new World();
    world.me = undefined;
    open('/auth/callback?error=access_denied', world);
    const alert = await screen.findByRole('alert');
    expect(alert).toHaveTextContent(
      /Could not sign you in.*it says access_denied\.\s*Request 0a1b/,
    );
    expect(screen.getByRole('link', { name: 'Sign in' })).toHaveAttribute(
      'href',
      '/auth/sign-in?return=%2F',
    );
    await expectAccessible();
  });

  it('sees a failed sign-in, and stays signed in as before', async () => {
    refuseSignIn();
    open('/auth/callback?error=access_denied', peopled());
    expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
    expect(screen.getByRole('alert')).toHaveTextContent(
      /still signed in as before.*it says access_denied/,
    );
    expect(screen.queryByRole('link', { name: 'Sign in' })).toBeNull();
  });

  it('restores a pasted key after a new sign-in', async () => {
    const { world, user, unmount } = open('/keys');
    await user.type(await screen.findByLabelText('Add a key'), 'ssh-ed25519 AAAA');
    const { me } = world;
    world.me = undefined;
    await user.click(screen.getByRole('button', { name: 'Add' }));
    await screen.findByRole('dialog', { name: 'Your session has ended' });
    unmount();
    world.me = me;
    open('/keys', world);
    expect(await screen.findByLabelText('Add a key')).toHaveValue('ssh-ed25519 AAAA');
  });

  it('restores no key of another user', async () => {
    const { world, user, unmount } = open('/keys');
    await user.type(await screen.findByLabelText('Add a key'), 'ssh-ed25519 AAAA');
    await waitFor(() => expect(world.open).toBe(1));
    const { me } = world;
    world.me = undefined;
    world.reset('expired');
    await screen.findByRole('dialog', { name: 'Your session has ended' });
    expect(Object.keys(sessionStorage)).toEqual(['paved-kept keys']);
    unmount();
    world.me = { ...me!, login: 'bob@acme.io', owner: 'u-bob' };
    open('/keys', world);
    expect(await screen.findByLabelText('Add a key')).toHaveValue('');
    expect(Object.keys(sessionStorage)).toEqual([]);
  });

  it('signs out, and leaves no data behind', async () => {
    const { world, user } = open('/keys');
    await user.type(await screen.findByLabelText('Add a key'), 'ssh-ed25519 AAAA');
    await waitFor(() => expect(world.open).toBe(1));
    await user.click(screen.getByRole('button', { name: 'Sign out' }));
    expect(await screen.findByRole('link', { name: 'Sign in' })).toBeVisible();
    await settle();
    // Browsers keep the page in this state, and show it to the next user, after a step back.
    for (const theirs of ['ada@laptop', 'ada@acme.io'])
      expect(screen.queryByText(theirs)).toBeNull();
    expect(screen.queryByRole('dialog')).toBeNull();
    expect(Object.keys(sessionStorage)).toEqual([]);
  });

  it('reloads a page that the browser kept in memory', async () => {
    open('/keys');
    await screen.findByText('ada@laptop');
    const reload = vi.fn();
    vi.stubGlobal('location', { href: window.location.href, reload });
    onTestFinished(() => void vi.unstubAllGlobals());
    window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: false }));
    expect(reload).not.toHaveBeenCalled();
    window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
    expect(reload).toHaveBeenCalledOnce();
  });

  it('shows no data of another user who signed in on another page', async () => {
    const { world } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.me = { ...world.me!, login: 'bob@acme.io', owner: 'u-bob' };
    world.reset();
    await waitFor(() => expect(screen.queryByText('ada@acme.io')).toBeNull());
    expect(screen.queryByRole('link', { name: 'ada' })).toBeNull();
  });

  it('is signed out here if the portal cannot notify its other replicas', async () => {
    const { world, user } = open('/keys');
    await user.type(await screen.findByLabelText('Add a key'), 'ssh-ed25519 AAAA');
    world.refuse('POST', /sign-out$/, {
      status: 503,
      detail: 'You are signed out here; other replicas may not know it.',
    });
    await user.click(screen.getByRole('button', { name: 'Sign out' }));
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'You are signed out here, but perhaps not everywhereYou are signed out here; other replicas may not know it.',
    );
    await settle();
    expect(screen.queryByText('ada@laptop')).toBeNull();
    expect(screen.queryByRole('dialog')).toBeNull();
    expect(Object.keys(sessionStorage)).toEqual([]);
    await expectAccessible();
  });

  it('stays signed in after a failed sign-out', async () => {
    const { world, user } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.refuse('POST', /sign-out$/, {
      status: 502,
      detail: 'The Kubernetes API does not respond.',
    });
    await user.click(screen.getByRole('button', { name: 'Sign out' }));
    expect(await screen.findByRole('alert')).toHaveTextContent('Could not sign you out everywhere');
    world.add('stock-pool', { name: 'later', namespace: 'team-vision' });
    expect(await screen.findByRole('link', { name: 'later' })).toBeVisible();
  });

  it('signs out of other open pages too, and leaves no data there', async () => {
    const { world, user } = open('/keys');
    await user.type(await screen.findByLabelText('Add a key'), 'ssh-ed25519 AAAA');
    await waitFor(() => expect(world.open).toBe(1));
    world.me = undefined;
    world.reset('signed-out');
    expect(await screen.findByText('You signed out in another tab.')).toBeVisible();
    expect(screen.getByRole('link', { name: 'Sign in' })).toHaveAttribute(
      'href',
      '/auth/sign-in?return=%2Fkeys',
    );
    for (const theirs of ['ada@laptop', 'ada@acme.io'])
      expect(screen.queryByText(theirs)).toBeNull();
    expect(Object.keys(sessionStorage)).toEqual([]);
    await expectAccessible();
  });

  it('signs out of hidden pages without a stream too', async () => {
    const world = peopled();
    world.streaming = false;
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Show' }));
    await reveal(user);
    await screen.findByText('correct-horse-battery');
    const other = new BroadcastChannel('paved-signed-out');
    onTestFinished(() => other.close());
    other.postMessage(undefined);
    expect(await screen.findByText('You signed out in another tab.')).toBeVisible();
    expect(document.body).not.toHaveTextContent('correct-horse-battery');
  });

  it('reports a sign-out to the browser’s other pages', async () => {
    const { user } = open('/keys');
    await screen.findByText('ada@laptop');
    const told = vi.fn();
    const other = new BroadcastChannel('paved-signed-out');
    other.onmessage = told;
    onTestFinished(() => other.close());
    await user.click(screen.getByRole('button', { name: 'Sign out' }));
    await waitFor(() => expect(told).toHaveBeenCalledOnce());
  });

  it('sees a dialog over the page after the session expired', async () => {
    const { world } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.me = undefined;
    world.reset('expired');
    const dialog = await screen.findByRole('dialog', { name: 'Your session has ended' });
    expect(within(dialog).getByRole('link', { name: 'Sign in again' })).toHaveAttribute(
      'href',
      '/auth/sign-in?return=%2F',
    );
    await expectAccessible();
  });
});

it('has no sign-out for the kubeconfig’s user', async () => {
  const world = peopled();
  world.me = { ...world.me!, credential: 'kubeconfig', login: 'admin', groups: ['system:masters'] };
  open('/', world);
  expect(await screen.findByText('admin')).toBeVisible();
  expect(screen.queryByRole('button', { name: 'Sign out' })).toBeNull();
});

describe('the line', () => {
  it('reports a break, keeps the known state, and resumes', async () => {
    const { world, user } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.streaming = false;
    world.reset();
    expect(await screen.findByText(/No live updates/)).toBeVisible();
    expect(screen.getByRole('link', { name: 'ada' })).toBeVisible();
    expect(screen.getByText(/Retrying/)).toHaveAttribute('aria-hidden', 'true');
    await expectAccessible();
    world.add('stock-pool', { name: 'meanwhile', namespace: 'team-vision' });
    world.streaming = true;
    await user.click(screen.getByRole('button', { name: 'Retry now' }));
    expect(await screen.findByRole('link', { name: 'meanwhile' })).toBeVisible();
    await waitFor(() => expect(screen.queryByText(/No live updates/)).toBeNull());
  });

  it('does not report a short break', async () => {
    // The shortest possible delay before the next attempt.
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const { world } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    vi.useFakeTimers();
    world.reset('shutdown');
    for (let round = 0; round < 14; round++) {
      await act(() => vi.advanceTimersByTimeAsync(100));
      expect(screen.queryByText(/No live updates/)).toBeNull();
    }
    expect(world.open).toBe(1);
  });

  it('is not needed: lists are polled page by page, and marked as old', async () => {
    const world = peopled();
    world.streaming = false;
    for (let index = 0; index < 600; index++)
      world.add('stock-pool', {
        name: `pool-${index}`,
        namespace: 'team-vision',
        owner: 'barbara@acme.io',
      });
    open('/', world);
    expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
    expect(await screen.findByText(/No live updates.*You have 128 open streams/)).toBeVisible();
    expect(await screen.findByText('3 environments')).toBeVisible();
    expect(
      world.asked.filter((one) => one === 'GET /api/v1/environments').length,
    ).toBeGreaterThanOrEqual(2);
    world.add('stock-pool', { name: 'later', namespace: 'team-vision' });
    expect(await screen.findByRole('link', { name: 'later' })).toBeVisible();
  });

  /** The number of lists requested. */
  const lists = ({ asked }: World) =>
    asked.filter((one) => one === 'GET /api/v1/environments').length;

  it('is replaced by a list if it is delayed, and the page reports it', async () => {
    const world = peopled();
    world.buffering = true;
    open('/', world);
    expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
    expect(await screen.findByText(/No live updates.*slow or blocked/)).toBeVisible();
    expect(lists(world)).toBe(1);
    world.add('stock-pool', { name: 'later', namespace: 'team-vision' });
    world.flush();
    expect(await screen.findByRole('link', { name: 'later' })).toBeVisible();
    await waitFor(() => expect(screen.queryByText(/No live updates/)).toBeNull());
  });

  it('has priority over a list that arrives later', async () => {
    const world = peopled();
    world.buffering = true;
    open('/', world);
    await waitFor(() => expect(world.open).toBe(1));
    world.behind.add('ada');
    let answer = () => {};
    world.held = new Promise((resolve) => (answer = resolve));
    await waitFor(() => expect(lists(world)).toBe(1));
    world.flush();
    expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
    answer();
    await settle();
    expect(screen.getByRole('link', { name: 'ada' })).toBeVisible();
  });

  it('reports all changes again after an older list', async () => {
    const { world } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.behind.add('ada');
    world.streaming = false;
    world.reset();
    await waitFor(() => expect(screen.queryByRole('link', { name: 'ada' })).toBeNull());
    world.streaming = true;
    expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
  });

  it('may be of another process, and drops deleted environments', async () => {
    const { world } = open('/', peopled());
    await screen.findByRole('link', { name: 'ada' });
    world.streaming = false;
    world.reset();
    world.environments.delete('GpuDevWorkspaceClaim/team-vision/ada');
    world.restart();
    world.streaming = true;
    await waitFor(() => expect(screen.queryByRole('link', { name: 'ada' })).toBeNull());
    expect(screen.getByRole('link', { name: 'broken' })).toBeVisible();
  });
});

it('waits for the kinds of a starting portal, and shows environments meanwhile', async () => {
  const world = peopled();
  world.knows = false;
  const { user } = open('/', world);
  expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
  await user.click(screen.getByRole('link', { name: 'New environment' }));
  expect(await screen.findByText(/No templates yet/)).toBeVisible();
  world.knows = true;
  expect(await screen.findByRole('link', { name: 'GPU workspace' })).toBeVisible();
});

it.each(['/new', `${ADA}?tab=change`])(
  'reports why the kinds are missing, and continues when they arrive (%s)',
  async (path) => {
    const world = peopled();
    let answer = () => {};
    world.held = new Promise((resolve) => (answer = resolve));
    world.refuse('GET', /kinds$/, {
      status: 502,
      detail: 'The Kubernetes API does not respond.',
      lasts: true,
    });
    open(path, world);
    expect(await screen.findByText('Checking your sign-in…')).not.toHaveClass('unseen');
    answer();
    const alert = await screen.findByRole('alert');
    expect(alert).toHaveTextContent(
      /Could not load the templates.*The Kubernetes API does not respond\./,
    );
    await expectAccessible();
    world.relent();
    expect(
      await (path === '/new'
        ? screen.findByRole('link', { name: 'GPU workspace' })
        : screen.findByLabelText(/^Instance type/)),
    ).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
  },
);

it('reports a portal without a response, and continues when it responds', async () => {
  const world = peopled();
  world.refuse('GET', /me$/, {
    status: 502,
    detail: 'The Kubernetes API does not respond.',
    lasts: true,
  });
  open('/', world);
  expect(await screen.findByRole('alert')).toHaveTextContent(
    'The Kubernetes API does not respond.',
  );
  await expectAccessible();
  world.relent();
  expect(await screen.findByRole('link', { name: 'ada' })).toBeVisible();
});

it('explains a missing right to use the portal, stops requests, and offers a sign-out', async () => {
  const world = peopled();
  world.refuse('GET', /me$/, {
    status: 403,
    detail:
      'The portal has no permission to act for you. Ask its operator to add the user "oidc:ada" to `impersonation.users` of the chart.',
  });
  const { user } = open('/', world);
  expect(
    await screen.findByRole('heading', { level: 1, name: 'You do not have access to this portal' }),
  ).toBeVisible();
  expect(screen.getByRole('alert')).toHaveTextContent(
    'The portal has no permission to act for you.',
  );
  await expectAccessible();
  await act(() => new Promise((resolve) => setTimeout(resolve, 1500)));
  expect(world.asked).toEqual(['GET /api/v1/me', 'GET /api/v1/kinds']);
  await user.click(screen.getByRole('button', { name: 'Sign out' }));
  await waitFor(() => expect(world.me).toBeUndefined());
});

it('reports an unknown path', async () => {
  open('/nowhere');
  expect(await screen.findByRole('heading', { name: 'Page not found' })).toBeVisible();
  await expectAccessible();
});
