import { act, screen, waitFor, within } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import type { Environment } from '../src/api/schema';
import { expectAccessible, open } from './app';
import { kindOf, type Stage } from './data';
import { World } from './world';

const G = 'platform.acme.io';
const ADA = `/environments/team-vision/gpudevworkspaceclaims.${G}/ada`;
const MINUTE = 60_000;

const ahead = (minutes: number) => new Date(Date.now() + minutes * MINUTE).toISOString();
const price = { hourlyUSD: '0.542', stoppedHourlyUSD: '0.011', asOf: '2026-07-20' };

/** A workspace that expires in 25.5 minutes. */
function workspace(world: World, over: Partial<Environment> & { stage?: Stage } = {}): Environment {
  return world.add('gpu-workspace', {
    name: 'ada',
    namespace: 'team-vision',
    power: 'Running',
    price,
    lifecycle: { expiresAt: ahead(25.5), maximum: '1d', onExpiry: 'Stop' },
    expiring: { reason: 'Expiring', message: 'To renew it, run: paved extend ada 4h' },
    ...over,
  });
}

const stopped = (): Partial<Environment> => ({
  power: 'Stopped',
  phase: 'Stopped',
  expiring: undefined,
  lifecycle: {
    expiresAt: ahead(-180),
    deletesAt: ahead(60 * 24 * 13 + 5),
    onExpiry: 'Stop',
    stoppedAt: ahead(-180),
    stopReason: 'Expired',
  },
});

describe('a card', () => {
  it('shows the end and the price', async () => {
    const world = new World();
    workspace(world);
    workspace(world, { name: 'alan', ...stopped() });
    workspace(world, { name: 'old', price: undefined, lifecycle: undefined, power: undefined });
    workspace(world, { name: 'endless', lifecycle: {}, expiring: undefined });
    workspace(world, { name: 'refused', stage: 'failing', power: 'Starting', lifecycle: {} });
    world.change(workspace(world, { name: 'off', ...stopped() }), { endpoint: undefined });
    const { user } = open('/?sort=end', world);
    const card = async (name: string) => (await screen.findByRole('link', { name })).closest('li')!;
    expect(await card('ada')).toHaveTextContent('Stops in 25 min$0.542 per hour');
    expect(await card('alan')).toHaveTextContent('Deleted in 13 days$0.011 per hour');
    expect(await card('old')).toHaveTextContent('Price unknown');
    expect(await card('old')).not.toHaveTextContent('No end');
    expect(await card('endless')).toHaveTextContent('No end$0.542 per hour');
    expect(await card('refused')).toHaveTextContent('$0.542 per hour once it runs');
    expect(await card('off')).toHaveTextContent('No address while stopped');
    const names = screen.getAllByRole('heading', { level: 2 }).map((one) => one.textContent);
    expect(names).toEqual(['ada', 'alan', 'off', 'endless', 'old', 'refused']);
    await user.click(screen.getByLabelText('Table'));
    expect(await screen.findByRole('columnheader', { name: 'End and price' })).toBeVisible();
    expect(screen.getByRole('row', { name: /^ada/ })).toHaveTextContent('Stops in 25 min');
    await expectAccessible();
  });
});

describe('an end that has passed', () => {
  const WEEK = 60 * 24 * 7;
  const ended = { expiring: undefined, lifecycle: { expiresAt: ahead(-WEEK), onExpiry: 'Stop' } };
  const cannotStop = 'a virtual cluster cannot be stopped';

  it('is shown on cards as expired or due, and sorts first', async () => {
    const world = new World();
    workspace(world);
    const marked = { ...ended.lifecycle, onExpiry: 'Mark' };
    workspace(world, { name: 'kept', ...ended, lifecycle: marked, cannotStop });
    workspace(world, { name: 'late', ...ended });
    const overdue = { expiresAt: ahead(-WEEK), deletesAt: ahead(-5) };
    workspace(world, { name: 'held', ...stopped(), lifecycle: overdue });
    open('/?sort=end', world);
    const card = async (name: string) => (await screen.findByRole('link', { name })).closest('li')!;
    expect(await card('kept')).toHaveTextContent('Expired 7 days ago$0.542 per hour');
    expect(await card('late')).toHaveTextContent('Stop is due$0.542 per hour');
    expect(await card('held')).toHaveTextContent('Deletion is due$0.011 per hour');
    const due = within(await card('held')).getByText('Deletion is due');
    expect(due).toHaveAttribute('datetime', overdue.deletesAt);
    expect(due).toHaveAttribute('title', expect.stringContaining('UTC'));
    const names = screen.getAllByRole('heading', { level: 2 }).map((one) => one.textContent);
    expect(names).toEqual(['kept', 'late', 'held', 'ada']);
  });

  it('is due in the banner of a stopped environment', async () => {
    const world = new World();
    const { lifecycle, ...rest } = stopped();
    workspace(world, { ...rest, lifecycle: { ...lifecycle, deletesAt: ahead(-5) } });
    open(ADA, world);
    const banner = await screen.findByRole('region', { name: 'This environment is stopped' });
    expect(banner).toHaveTextContent('at the end of its time to live. It is due to be deleted.');
  });

  it('is not listed in Operations', async () => {
    const world = new World();
    workspace(world, { ...ended, cannotStop });
    open('/operations', world);
    const ends = await screen.findByRole('region', { name: 'Expires next' });
    expect(ends).toHaveTextContent('No environment has an end in the future.');
  });
});

describe('an environment near its end', () => {
  it('has a banner, and is extended from it', async () => {
    const world = new World();
    workspace(world);
    const { user } = open(ADA, world);
    const banner = await screen.findByRole('region', { name: /^This environment stops in 25 min/ });
    expect(banner).toHaveTextContent(/At \d+ \w+ \d+, .* Extend it to keep it longer/);
    await expectAccessible();
    await user.click(within(banner).getByRole('button', { name: 'Extend' }));
    const dialog = await screen.findByRole('dialog', { name: 'Extend ada' });
    const time = within(dialog).getByLabelText<HTMLSelectElement>('Time from now');
    expect([...time.options].map(({ text }) => text)).toEqual([
      '1 hour',
      '4 hours',
      '8 hours',
      'Maximum (1d)',
    ]);
    await expectAccessible();
    await user.selectOptions(time, '8h');
    await user.click(within(dialog).getByRole('button', { name: 'Extend' }));
    expect(await screen.findByText(/^ada ends at /)).toBeVisible();
    await waitFor(() => expect(screen.queryByText(/^This environment stops/)).toBeNull());
    const facts = screen.getByRole('region', { name: 'Lifecycle and price' });
    expect(facts).toHaveTextContent(/in (8 hr|7 hr 59 min)/);
    expect(world.asked).toContain(
      `POST /api/v1/environments/team-vision/gpudevworkspaceclaims.${G}/ada/extend`,
    );
  });

  it('is extended to the maximum of Settings', async () => {
    const world = new World();
    workspace(world);
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Extend' }));
    const dialog = await screen.findByRole('dialog', { name: 'Extend ada' });
    await user.selectOptions(within(dialog).getByLabelText('Time from now'), 'maximum');
    await user.click(within(dialog).getByRole('button', { name: 'Extend' }));
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    const { view } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    const left = Date.parse(view.lifecycle!.expiresAt!) - Date.now();
    expect(left).toBeGreaterThan(23.9 * 60 * MINUTE);
  });

  it('has no end any more where Settings have no maximum', async () => {
    const world = new World();
    workspace(world, { lifecycle: { expiresAt: ahead(25.5), onExpiry: 'Stop' } });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Extend' }));
    const dialog = await screen.findByRole('dialog', { name: 'Extend ada' });
    const time = within(dialog).getByLabelText('Time from now');
    await user.selectOptions(time, 'No end');
    expect(time).toHaveAccessibleDescription(/runs, and costs, until a user stops or deletes it/);
    expect(time).toHaveAccessibleDescription(/comes from Git, change spec\.lifecycle\.ttl there/);
    await user.click(within(dialog).getByRole('button', { name: 'Extend' }));
    expect(await screen.findByText('ada now has no end')).toBeVisible();
    const facts = screen.getByRole('region', { name: 'Lifecycle and price' });
    await waitFor(() => expect(facts).toHaveTextContent('EndsNever'));
    const { spec } = world.environments.get('GpuDevWorkspaceClaim/team-vision/ada')!;
    expect(spec['lifecycle']).toEqual({ ttl: 'never' });
  });

  it('keeps the dialog open with the server’s words where the extension is refused', async () => {
    const world = new World();
    workspace(world);
    world.refuse('POST', /extend$/, { status: 403, detail: 'User "ada" cannot patch resource' });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Extend' }));
    const dialog = await screen.findByRole('dialog', { name: 'Extend ada' });
    await user.click(within(dialog).getByRole('button', { name: 'Extend' }));
    expect(await within(dialog).findByRole('alert')).toHaveTextContent(
      'Could not extend adaUser "ada" cannot patch resource',
    );
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  });

  it('says why it cannot be stopped', async () => {
    const world = new World();
    const cannotStop = 'a virtual cluster cannot be stopped';
    const lifecycle = { expiresAt: ahead(25.5), maximum: '1d', onExpiry: 'Mark' };
    workspace(world, { cannotStop, lifecycle, price: { hourlyUSD: '0.1' } });
    open(ADA, world);
    const banner = await screen.findByRole('region', {
      name: /^This environment expires in 25 min/,
    });
    expect(banner).toHaveTextContent(`Stop is not available: ${cannotStop}.`);
    expect(within(banner).queryByRole('button', { name: 'Stop' })).toBeNull();
    const facts = screen.getByRole('region', { name: 'Lifecycle and price' });
    expect(facts).not.toHaveTextContent('Price while stopped');
  });
});

describe('stopping and starting', () => {
  it('says what a stop keeps and costs before it is requested', async () => {
    const world = new World();
    const view = workspace(world);
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Stop' }));
    const dialog = await screen.findByRole('dialog', { name: 'Stop ada?' });
    expect(dialog).toHaveTextContent('The disk keeps its data.');
    expect(dialog).toHaveTextContent('While stopped, it costs about $0.011 per hour.');
    await expectAccessible();
    await user.click(within(dialog).getByRole('button', { name: 'Stop environment' }));
    expect(await screen.findByText('ada is being stopped')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Stopping…' })).toBeDisabled();
    act(() => void world.change(view, stopped()));
    expect(
      await screen.findByRole('region', { name: 'This environment is stopped' }),
    ).toHaveTextContent('The disk keeps its data.');
  });

  it('starts a stopped environment', async () => {
    const world = new World();
    const view = workspace(world, stopped());
    const { user } = open(ADA, world);
    const banner = await screen.findByRole('region', { name: 'This environment is stopped' });
    expect(banner).toHaveTextContent(
      'Stopped 3 hr ago at the end of its time to live. It is deleted in 13 days.',
    );
    expect(banner).toHaveTextContent('$0.011 per hour');
    expect(within(banner).queryByRole('button', { name: 'Stop' })).toBeNull();
    await expectAccessible();
    await user.click(within(banner).getByRole('button', { name: 'Start' }));
    expect(await screen.findByText('ada is being started')).toBeVisible();
    expect(within(banner).getByRole('button', { name: 'Starting…' })).toBeDisabled();
    act(() => void world.change(view, { power: 'Starting', phase: 'Starting', ready: false }));
    await waitFor(() => expect(screen.queryByText('This environment is stopped')).toBeNull());
  });

  it('shows a refusal, and offers the request again', async () => {
    const world = new World();
    workspace(world, stopped());
    world.refuse('POST', /start$/, { status: 403, detail: 'User "ada" cannot patch resource' });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Start' }));
    expect(await screen.findByText('Could not start ada')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Start' })).toBeEnabled();
  });

  it('does not call a lost answer a failure', async () => {
    const world = new World();
    workspace(world, stopped());
    world.refuse('POST', /start$/, { status: 504, detail: 'The Kubernetes API does not respond.' });
    const { user } = open(ADA, world);
    await user.click(await screen.findByRole('button', { name: 'Start' }));
    expect(await screen.findByText('We could not confirm that ada is being started')).toBeVisible();
  });

  it('offers no request for a paused environment, and says why', async () => {
    const world = new World();
    workspace(world, { paused: true, phase: 'Paused' });
    open(ADA, world);
    const banner = await screen.findByRole('region', { name: 'This environment is paused' });
    expect(banner).toHaveTextContent('It continues, and its end still applies.');
    for (const name of ['Extend', 'Stop', 'Start'])
      expect(screen.queryByRole('button', { name })).toBeNull();
    await expectAccessible();
  });

  it('says on the card that a paused composite does not end', async () => {
    const world = new World();
    const kind = kindOf('gpu-workspace', 'namespaced');
    world.others.push(kind);
    const { apiVersion, plural } = kind;
    workspace(world, { kind: kind.kind, apiVersion, plural, paused: true, phase: 'Paused' });
    open('/', world);
    const card = (await screen.findByRole('link', { name: 'ada' })).closest('li');
    await waitFor(() => expect(card).toHaveTextContent('Paused, does not end'));
  });

  it('offers none for an older schema revision', async () => {
    const world = new World();
    workspace(world, { lifecycle: undefined, power: undefined, expiring: undefined });
    open(ADA, world);
    await screen.findByRole('region', { name: 'Lifecycle and price' });
    for (const name of ['Extend', 'Stop', 'Start'])
      expect(screen.queryByRole('button', { name })).toBeNull();
  });
});

describe('the form', () => {
  it('has the time to live, and says which values are allowed', async () => {
    const world = new World();
    const { user } = open(`/new?kind=gpudevworkspaceclaims.${G}`, world);
    const group = await screen.findByRole('group', { name: 'Lifecycle' });
    const ttl = within(group).getByLabelText(/^Time to live/);
    expect(within(group).queryByText(/^Idle/)).toBeNull();
    await user.type(ttl, '8');
    await user.tab();
    expect(ttl).toHaveAccessibleDescription(/^Allowed: the words of the server/);
    await user.type(ttl, 'h');
    await waitFor(() => expect(ttl).not.toHaveAttribute('aria-invalid', 'true'));
    await expectAccessible();
  });
});

describe('the price', () => {
  it('is shown in the form before the environment is created', async () => {
    const world = new World();
    world.ttl = 8 * 3600;
    open(`/new?kind=gpudevworkspaceclaims.${G}`, world);
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(
      await within(preview).findByText(/^About \$0\.542 per hour, \$0\.011 while stopped/),
    ).toHaveTextContent(/ Ends 8 hr after its creation\.$/);
  });

  it('stands beside the button that creates', async () => {
    const world = new World();
    world.ttl = 8 * 3600;
    open(`/new?kind=gpudevworkspaceclaims.${G}`, world);
    const button = await screen.findByRole('button', { name: 'Create GPU workspace' });
    await waitFor(() =>
      expect(button.parentElement).toHaveTextContent(
        /^\$0\.542 per hour, ends 8 hr after its creation/,
      ),
    );
  });

  it('over the budget is refused before the environment is created', async () => {
    const world = new World();
    world.overBudget =
      'found 2.342 USD per hour with 0.542 for this environment; allowed: 2, the budget of namespace team-vision';
    const { user } = open(`/new?kind=gpudevworkspaceclaims.${G}`, world);
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(await within(preview).findByText(/^This would exceed the budget: found/)).toBeVisible();
    const button = screen.getByRole('button', { name: 'Create GPU workspace' });
    expect(button.parentElement).toHaveTextContent('This would exceed the budget.');
    await user.click(button);
    expect(await screen.findByRole('alert')).toHaveTextContent(
      `This would exceed the budget${world.overBudget}`,
    );
    expect(screen.getByLabelText('Namespace')).toHaveAccessibleDescription(
      new RegExp('the budget of namespace team-vision'),
    );
    expect(screen.queryByRole('button', { name: 'Create anyway' })).toBeNull();
    expect(world.asked).not.toContain('POST /api/v1/environments');
    await expectAccessible();
  });

  it('of a change over the budget is refused before the change is saved', async () => {
    const world = new World();
    workspace(world, { expiring: undefined });
    world.overBudget = 'found 2.342 USD per hour; allowed: 2, the budget of namespace team-vision';
    const { user } = open(`${ADA}?tab=change`, world);
    const type = await screen.findByLabelText(/^Instance type/);
    await user.clear(type);
    await user.type(type, 'g5.2xlarge');
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    expect(await screen.findByRole('alert')).toHaveTextContent(
      `This would exceed the budget${world.overBudget}`,
    );
    expect(screen.queryByRole('button', { name: 'Save anyway' })).toBeNull();
    expect(world.asked.filter((one) => one.startsWith('PUT'))).toEqual([]);
  });

  it('is unknown rather than 0', async () => {
    const world = new World();
    world.price = undefined;
    open(`/new?kind=gpudevworkspaceclaims.${G}`, world);
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(await within(preview).findByText('Price unknown.')).toBeVisible();
    expect(preview).not.toHaveTextContent('$0');
  });
});

describe('operations', () => {
  it('sums costs by owner, namespace and kind, and lists the next ends', async () => {
    const world = new World();
    workspace(world);
    workspace(world, { name: 'alan', owner: 'alan@acme.io', ...stopped() });
    workspace(world, {
      name: 'refused',
      owner: 'alan@acme.io',
      stage: 'failing',
      power: 'Starting',
      lifecycle: {},
    });
    world.add('stock-pool', { name: 'render', namespace: 'team-shop', power: 'Running' });
    world.budgets = { 'team-vision': '0.5' };
    const { user } = open('/operations', world);
    const costs = await screen.findByRole('region', { name: 'Estimated cost' });
    const rows = () =>
      within(costs)
        .getAllByRole('row')
        .slice(1)
        .map((row) => [...row.children].map(({ textContent }) => textContent).join(' | '));
    await waitFor(() =>
      expect(rows()).toEqual([
        'ada@acme.io | 2 | $0.542 + 1 unknown | $396 + 1 unknown | $0.00 | 1',
        'alan@acme.io | 2 | $0.011 | $8 | $0.011 | 0',
      ]),
    );
    expect(costs).toHaveTextContent('all environments, per hour$0.553 + 1 unknown');
    expect(costs).toHaveTextContent('stopped environments, per hour$0.011');
    expect(costs).toHaveTextContent('environments without a price1');
    expect(costs).toHaveTextContent('1 environment could not be created, and is not in the sums.');
    await user.click(within(costs).getByLabelText('By kind'));
    await waitFor(() =>
      expect(rows()).toEqual([
        'GPU workspace | 3 | $0.553 | $404 | $0.011 | 0',
        'GPU stock pool | 1 | Unknown | Unknown | $0.00 | 1',
      ]),
    );
    await user.click(within(costs).getByLabelText('By namespace'));
    await waitFor(() =>
      expect(rows()).toContain('team-vision | 3 | $0.553 | $404 | $0.011 | 0 | $0.50 (111 % used)'),
    );
    const ends = screen.getByRole('region', { name: 'Expires next' });
    expect(
      within(ends)
        .getAllByRole('link')
        .map(({ textContent }) => textContent),
    ).toEqual(['team-vision/ada', 'team-vision/alan']);
    await expectAccessible();
  });
});
