import { screen, waitFor, within } from '@testing-library/react';
import type { UserEvent } from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { answer, api } from '../src/api/client';
import { kindPath } from '../src/kinds/metadata';
import { asked, beginning, orderOf, pruned, type Schema } from '../src/kinds/schema';
import { holdsPrivateKey, privateKeysIn } from '../src/kinds/secrets';
import { faultsIn } from '../src/kinds/validate';
import { kindsAtom } from '../src/state/session';
import { expectAccessible, open } from './app';
import { APIS, exampleOf, kindOf, type Api } from './data';
import { World } from './world';

/** The button that creates the environment. */
const CREATE = /^Create (?!anyway)/;

const HINTS = {
  login: 'ada@acme.io',
  keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8 ada'],
};

/** The fields of each kind without a possible default. */
const NEEDED: Record<Api, [label: RegExp, value: string][]> = {
  'gpu-workspace': [],
  'application-environment': [[/^Node size/, 'medium']],
  'unified-environment': [
    [/^Image/, 'ghcr.io/acme/shop:1.0'],
    [/^App name/, 'shop'],
  ],
  'stock-pool': [
    [/^Spec name/, 'g1.1'],
    [/^Replicas/, '2'],
  ],
  'virtual-environment': [],
};

async function fill(user: UserEvent, api: Api): Promise<void> {
  for (const [label, value] of NEEDED[api]) {
    const field = screen.getByLabelText(label);
    if (field instanceof HTMLSelectElement) await user.selectOptions(field, value);
    else await user.type(field, value);
  }
}

describe.each(APIS)('the form of %s', (api) => {
  const kind = kindOf(api);
  const path = `/new?kind=${kindPath(kind)}`;

  it.each(['claims', 'namespaced'] as const)(
    'has every field of the schema, and takes the example (%s)',
    (flavour) => {
      const schema = kindOf(api, flavour).schema as Schema;
      const { writeConnectionSecretToRef: _, ...spec } = exampleOf(api).spec;
      expect(faultsIn(schema, spec)).toEqual([]);
      expect(pruned(schema, spec)).toEqual(spec);
      const inner = schema.properties!['parameters'] ?? schema;
      expect(orderOf(schema)[0]).not.toBe('lifecycle');
      expect([...orderOf(inner)].sort()).toEqual(Object.keys(inner.properties!).sort());
      // The initial values lack only the required fields.
      const missing = faultsIn(schema, pruned(schema, beginning(schema, HINTS)));
      expect(missing.map(({ message }) => message)).toEqual(NEEDED[api].map(() => 'Required'));
    },
  );

  it('lists required fields, shows a preview, and creates the environment', async () => {
    const { world, user } = open(path);
    const make = await screen.findByRole('button', { name: CREATE });
    await expectAccessible();
    if (NEEDED[api].length > 0) {
      await user.click(make);
      expect((await screen.findAllByText('Required')).length).toBe(NEEDED[api].length);
      await waitFor(() => expect(document.activeElement).toHaveAttribute('aria-invalid', 'true'));
      await expectAccessible();
    }
    await fill(user, api);
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(await within(preview).findByText(/Creates \d+ resources?\./)).toBeVisible();
    expect(within(preview).getAllByRole('listitem').length).toBeGreaterThan(0);
    const name = screen.getByLabelText<HTMLInputElement>(/^Name\b/).value;
    await user.click(make);
    expect(await screen.findByRole('region', { name: 'Resources' })).toBeVisible();
    expect(screen.getByRole('heading', { name, level: 1 })).toBeVisible();
    const made = [...world.environments.values()][0]!;
    expect(faultsIn(kind.schema as Schema, made.spec)).toEqual([]);
    expect(made.spec['writeConnectionSecretToRef']).toEqual({ name: `${name}-conn` });
  });
});

describe('a form', () => {
  const GPU = `/new?kind=${kindPath(kindOf('gpu-workspace'))}`;

  it('begins with the user and the user’s keys, and has common fields first', async () => {
    open(GPU);
    expect(await screen.findByLabelText(/^Owner/)).toHaveValue('ada@acme.io');
    expect(screen.getByLabelText(/^SSH public keys/)).toHaveValue(
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop',
    );
    expect(screen.getByLabelText(/^Disk/)).toHaveAccessibleDescription(
      'Disk size in GiB. The disk can only grow. A manually attached volume blocks the change.',
    );
    for (const more of screen.getAllByText(/More options/))
      expect(more.closest('details')).not.toHaveAttribute('open');
    const labels = [...document.querySelectorAll('.schema-form .field')].map(
      (field) => (field as HTMLElement).dataset['name'],
    );
    expect(labels.filter((name) => name !== 'parameters').slice(0, 7)).toEqual([
      'owner',
      'instanceType',
      'opencvVersion',
      'sshPublicKeys',
      'allowedCidrs',
      'diskGB',
      'region',
    ]);
  });

  it('explains an invalid field after the user leaves it', async () => {
    const { user } = open(GPU);
    const disk = await screen.findByLabelText(/^Disk/);
    await user.clear(disk);
    await user.type(disk, '5');
    expect(screen.queryByText('At least 75')).toBeNull();
    await user.tab();
    expect(await screen.findByText('At least 75')).toBeVisible();
    expect(disk).toHaveAttribute('aria-invalid', 'true');
  });

  it('reports the invalid line of a list after the user leaves it', async () => {
    const { user } = open(GPU);
    const cidrs = await screen.findByLabelText(/^Allowed CIDRs/);
    await user.type(cidrs, `10.0.0.0/8{Enter}${'1'.repeat(44)}`);
    expect(cidrs).not.toHaveAttribute('aria-invalid');
    await user.tab();
    await waitFor(() => expect(cidrs).toHaveAccessibleDescription(/Line 2: At most 43/));
  });

  it('reports other errors if a browser cannot read a pattern', () => {
    const schema: Schema = {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string' },
        code: { type: 'string', pattern: '(?i)^[a-z]+$' },
        pattern: { type: 'string', pattern: '^a' },
      },
    };
    expect(faultsIn(schema, { code: '1', pattern: 'b' })).toEqual([
      { path: ['name'], message: 'Required' },
      { path: ['pattern'], message: 'Allowed: the format in the description' },
    ]);
  });

  it('shows the server’s error at its field until the field is changed', async () => {
    const { world, user } = open(GPU);
    await screen.findByLabelText(/^Owner/);
    const errors = [
      { field: 'spec.parameters.allowedCidrs', message: 'found 17; allowed: at most 16' },
      {
        field: 'spec.parameters.allowedCidrs[0]',
        message: 'found "10.0.0.1/8"; host bits are set',
      },
      { field: 'spec.parameters.region', message: 'found "mars-1"; there is no such region' },
      { field: 'spec', message: 'it is too large' },
    ];
    world.refuse('POST', /environments$/, {
      status: 422,
      detail: 'GpuDevWorkspaceClaim "x" is invalid',
      errors,
    });
    await user.click(screen.getByRole('button', { name: CREATE }));
    await waitFor(() =>
      expect(screen.getByLabelText(/^Allowed CIDRs/)).toHaveAccessibleDescription(
        /found 17; allowed: at most 16; Line 1: found "10.0.0.1\/8"; host bits are set/,
      ),
    );
    const field = screen.getByLabelText(/^Region/);
    expect(field).toHaveAccessibleDescription(/found "mars-1"/);
    expect(field.closest('details')).toHaveAttribute('open');
    expect(screen.getAllByRole('alert').map(({ textContent }) => textContent)).toEqual([
      expect.stringContaining('GpuDevWorkspaceClaim "x" is invalid'),
      'it is too large',
    ]);
    await expectAccessible();
    await user.clear(field);
    await user.type(field, 'eu-west-1');
    await waitFor(() => expect(field).not.toHaveAttribute('aria-invalid'));
    // The fold does not close while the user corrects the field.
    expect(field.closest('details')).toHaveAttribute('open');
    expect(field).toHaveFocus();
  });

  it('shows a quota’s error unchanged, and a taken name at its field', async () => {
    const { world, user } = open(GPU);
    await screen.findByLabelText(/^Owner/);
    world.refuse('POST', /environments$/, {
      status: 403,
      detail: 'exceeded quota: environments, requested: 1, used: 5, limited: 5',
    });
    await user.click(screen.getByRole('button', { name: CREATE }));
    expect(
      await screen.findByText('exceeded quota: environments, requested: 1, used: 5, limited: 5'),
    ).toBeVisible();
    const name = screen.getByLabelText<HTMLInputElement>(/^Name\b/);
    world.add('gpu-workspace', {
      name: name.value,
      namespace: 'team-vision',
      owner: 'grace@acme.io',
    });
    await user.click(screen.getByRole('button', { name: CREATE }));
    await waitFor(() => expect(name).toHaveAccessibleDescription(/This name is taken/));
    expect(
      screen.getByText(/gpudevworkspaceclaims.platform.acme.io ".*" already exists/),
    ).toBeVisible();
    const namespace = screen.getByLabelText(/^Namespace/);
    await user.type(namespace, '-2');
    expect(name).not.toHaveAttribute('aria-invalid', 'true');
    await user.type(namespace, '{Backspace}{Backspace}');
    expect(name).toHaveAttribute('aria-invalid', 'true');
    await user.type(name, '-2');
    expect(name).not.toHaveAttribute('aria-invalid', 'true');
  });

  it('treats no lost response as a failure, and no quota conflict as a taken name', async () => {
    const { world, user } = open(GPU);
    await screen.findByLabelText(/^Owner/);
    world.refuse('POST', /environments$/, { status: 504, detail: 'The request timed out.' });
    await user.click(screen.getByRole('button', { name: CREATE }));
    expect(await screen.findByText(/We could not confirm that it was created/)).toBeVisible();
    expect(screen.getByText('The request timed out.')).toBeVisible();
    world.refuse('POST', /environments$/, {
      status: 409,
      detail:
        'Operation cannot be fulfilled on resourcequotas "environments": the object has been modified',
    });
    await user.click(screen.getByRole('button', { name: CREATE }));
    expect(
      await screen.findByText(/Operation cannot be fulfilled on resourcequotas/),
    ).toBeVisible();
    expect(screen.getByText('Could not create it')).toBeVisible();
    expect(screen.getByLabelText(/^Name\b/)).not.toHaveAttribute('aria-invalid', 'true');
  });

  it('shows the rejection by a rule of the cluster at its group, and says so beside it', async () => {
    const { user } = open(`/new?kind=${kindPath(kindOf('virtual-environment'))}`);
    await user.selectOptions(await screen.findByLabelText(/^Type/), 'gke');
    await user.selectOptions(screen.getByLabelText(/^Expose/), 'loadBalancer');
    const refused = await screen.findByText('1 field needs attention.');
    expect(refused.closest('[role="status"]')).toBeInTheDocument();
    expect(
      await screen.findByText(
        'expose: loadBalancer is for vcluster; the platform team decides who can reach a managed cluster',
      ),
    ).toHaveRole('alert');
    await expectAccessible();
  });

  it('asks twice before a creation that would be rejected', async () => {
    const { world, user } = open(GPU);
    await screen.findByLabelText(/^Owner/);
    world.refuse('POST', /preview$/, {
      status: 422,
      detail: 'spec.parameters.instanceType: found "m5.large"; allowed: a GPU machine',
      lasts: true,
    });
    const type = screen.getByLabelText(/^Instance type/);
    await user.clear(type);
    await user.type(type, 'm5.large');
    const preview = await screen.findByRole('region', { name: 'Preview' });
    await within(preview).findByText(/allowed: a GPU machine/);
    const make = screen.getByRole('button', { name: CREATE });
    await user.click(make);
    expect(await screen.findByText(/This would be rejected/)).toBeVisible();
    expect(world.asked).not.toContain('POST /api/v1/environments');
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Create anyway' }));
    await waitFor(() => expect(world.asked).toContain('POST /api/v1/environments'));
  });

  it('is shown with the right in another namespace only, and explains a rejection', async () => {
    const world = new World();
    ['team-vision', 'team-shop'].forEach((namespace) => world.closed.add(namespace));
    const { user } = open('/new', world);
    expect(
      (await screen.findAllByText(/You cannot create this in your default namespace/)).length,
    ).toBe(APIS.length);
    await expectAccessible();
    await user.click(screen.getByRole('link', { name: 'GPU workspace' }));
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(
      await within(preview).findByText(
        /You may not create GpuDevWorkspaceClaim in namespace team-vision/,
      ),
    ).toBeVisible();
    const namespace = screen.getByLabelText(/^Namespace/);
    await user.clear(namespace);
    await user.type(namespace, 'team-robotics');
    expect(await within(preview).findByText(/Creates \d+ resources?\./)).toBeVisible();
  });

  it('asks for the namespace without a default', async () => {
    const world = new World();
    world.me = { ...world.me!, namespaces: [] };
    const { user } = open('/new', world);
    const link = await screen.findByRole('link', { name: 'GPU stock pool' });
    expect(screen.queryByText(/You cannot create this in your default namespace/)).toBeNull();
    await user.click(link);
    const namespace = await screen.findByLabelText(/^Namespace/);
    expect(namespace).toBeRequired();
    await user.click(screen.getByRole('button', { name: CREATE }));
    await waitFor(() => expect(namespace).toHaveFocus());
    expect(namespace).toHaveAccessibleDescription(/Required/);
    expect(world.asked).not.toContain('POST /api/v1/preview');
    await expectAccessible();
    await user.type(namespace, 'team-shop');
    await fill(user, 'stock-pool');
    await user.click(screen.getByRole('button', { name: CREATE }));
    expect(await screen.findByRole('region', { name: 'Resources' })).toBeVisible();
    expect([...world.environments.keys()]).toEqual([expect.stringContaining('team-shop')]);
  });

  it('does not ask for the Secret of the connection details', () => {
    const kind = kindOf('gpu-workspace');
    const schema = {
      ...(kind.schema as Schema),
      properties: {
        ...(kind.schema as Schema).properties,
        writeConnectionSecretToRef: { type: 'object' },
      },
    };
    expect(asked({ schema }).properties).not.toHaveProperty('writeConnectionSecretToRef');
  });

  it('adds and removes optional fields', async () => {
    const { user } = open(`/new?kind=${kindPath(kindOf('virtual-environment'))}`);
    const app = await screen.findByRole('switch', { name: 'App' });
    expect(screen.queryByLabelText(/^Repository/)).toBeNull();
    await user.click(app);
    expect(await screen.findByLabelText(/^Repository/)).toBeRequired();
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: CREATE }));
    expect((await screen.findAllByText('Required')).length).toBe(3);
    await waitFor(() =>
      expect(screen.getAllByLabelText(/^(Name|Repository|Version)\b/)).toContain(
        document.activeElement,
      ),
    );
    await user.click(app);
    expect(screen.queryByLabelText(/^Repository/)).toBeNull();
  });

  it('reads lines of NAME=value', async () => {
    const { world, user } = open(`/new?kind=${kindPath(kindOf('unified-environment'))}`);
    await screen.findByRole('button', { name: CREATE });
    await fill(user, 'unified-environment');
    const env = screen.getByLabelText('Environment variables');
    await user.click(env.closest('details')!.querySelector('summary')!);
    await user.type(env, 'LOG_LEVEL');
    expect(env).toHaveAccessibleDescription(/Line 1: write NAME=value/);
    // A form with marked errors creates no environment.
    await user.click(screen.getByRole('button', { name: CREATE }));
    await waitFor(() => expect(env).toHaveFocus());
    expect(world.asked).not.toContain('POST /api/v1/environments');
    await user.type(env, '=info{enter}A=b=c');
    await user.click(screen.getByRole('button', { name: CREATE }));
    await screen.findByRole('heading', { name: 'Resources' });
    expect([...world.environments.values()][0]!.spec['backend']).toMatchObject({
      env: { LOG_LEVEL: 'info', A: 'b=c' },
    });
  });
});

it('keeps unreadable free YAML unchanged, and does not submit it', async () => {
  const path = `/new?kind=${kindPath(kindOf('virtual-environment'))}`;
  const { world, user } = open(path);
  await user.click(await screen.findByRole('switch', { name: 'App' }));
  await user.type(screen.getByLabelText(/^Repository/), 'https://charts.acme.io');
  await user.type(screen.getAllByLabelText(/^Name\b/).at(-1)!, 'shop');
  await user.type(screen.getByLabelText(/^Version/), '1.2.3');
  const values = screen.getByLabelText(/^Values/);
  await user.type(values, 'replicas: [[');
  await user.click(screen.getByRole('button', { name: CREATE }));
  await waitFor(() => expect(values).toHaveFocus());
  expect(values).toHaveValue('replicas: [');
  expect(world.asked).not.toContain('POST /api/v1/environments');
  await user.type(values, '2]');
  await user.click(screen.getByRole('button', { name: CREATE }));
  await screen.findByRole('heading', { name: 'Resources' });
  expect([...world.environments.values()][0]!.spec['parameters']).toMatchObject({
    app: { values: { replicas: [2] } },
  });
});

it('typed values survive a new sign-in', async () => {
  const path = `/new?kind=${kindPath(kindOf('stock-pool'))}`;
  const { world, user, unmount } = open(path);
  await user.type(await screen.findByLabelText(/^Spec name/), 'g7.2');
  const { me } = world;
  world.me = undefined;
  world.reset('expired');
  await screen.findByRole('dialog', { name: 'Your session has ended' });
  unmount();
  world.me = me;
  open(path, world);
  expect(await screen.findByLabelText(/^Spec name/)).toHaveValue('g7.2');
});

it('typed values survive a visit to another page, until the user discards them', async () => {
  const path = `/new?kind=${kindPath(kindOf('stock-pool'))}`;
  const { user } = open(path);
  await user.type(await screen.findByLabelText(/^Spec name/), 'g7.2');
  await user.click(screen.getByRole('link', { name: 'SSH keys' }));
  await screen.findByLabelText('Add a key');
  window.history.back();
  expect(await screen.findByLabelText(/^Spec name/)).toHaveValue('g7.2');
  await user.click(screen.getByRole('link', { name: 'Cancel' }));
  await screen.findByRole('heading', { level: 1, name: 'My environments' });
  window.history.back();
  expect(await screen.findByLabelText(/^Spec name/)).toHaveValue('');
});

it('a form starts empty after a creation', async () => {
  const path = `/new?kind=${kindPath(kindOf('stock-pool'))}`;
  const { world, user, unmount } = open(path);
  await user.type(await screen.findByLabelText(/^Spec name/), 'g7.2');
  await user.type(screen.getByLabelText(/^Replicas/), '2');
  await user.click(screen.getByRole('button', { name: CREATE }));
  await screen.findByRole('heading', { name: 'Resources' });
  expect(Object.keys(sessionStorage)).toEqual([]);
  unmount();
  open(path, world);
  expect(await screen.findByLabelText(/^Spec name/)).toHaveValue('');
});

describe('SSH keys', () => {
  const path = `/new?kind=${kindPath(kindOf('gpu-workspace'))}`;

  it('stored meanwhile are in the form after the return to it', async () => {
    const world = new World();
    const [key] = world.keys.splice(0);
    const { user } = open(path, world);
    const type = await screen.findByLabelText(/^Instance type/);
    await user.clear(type);
    await user.type(type, 'g5.xlarge');
    expect(screen.getByLabelText(/^SSH public keys/)).toHaveValue('');
    await user.click(screen.getByRole('link', { name: 'SSH keys' }));
    await user.type(await screen.findByLabelText('Add a key'), key!);
    await user.click(screen.getByRole('button', { name: 'Add' }));
    await screen.findByText('Your key was added');
    window.history.back();
    expect(await screen.findByLabelText(/^Instance type/)).toHaveValue('g5.xlarge');
    expect(screen.getByLabelText(/^SSH public keys/)).toHaveValue(key);
  });

  it('that cannot be read are reported as missing', async () => {
    const world = new World();
    const detail = 'The Kubernetes API does not respond.';
    world.refuse('GET', /keys$/, { status: 502, detail });
    world.refuse('GET', /keys$/, { status: 502, detail });
    const { user } = open(path, world);
    expect(await screen.findByRole('alert')).toHaveTextContent(
      `Could not load your SSH keys${detail}`,
    );
    expect(screen.queryByRole('button', { name: CREATE })).toBeNull();
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Try again' }));
    await user.click(await screen.findByRole('button', { name: 'Continue without keys' }));
    expect(await screen.findByLabelText(/^SSH public keys/)).toHaveValue('');
  });

  it('are not requested for a kind without keys', async () => {
    const world = new World();
    world.refuse('GET', /keys$/, { status: 502, detail: 'The Kubernetes API does not respond.' });
    open(`/new?kind=${kindPath(kindOf('stock-pool'))}`, world);
    expect(await screen.findByLabelText(/^Spec name/)).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
  });
});

it('a form stays while its schema is unknown for a while', async () => {
  const { world, user, store } = open(`/new?kind=${kindPath(kindOf('stock-pool'))}`);
  await user.type(await screen.findByLabelText(/^Spec name/), 'g7.2');
  await waitFor(() => expect(world.open).toBe(1));
  for (const [api, kind] of world.kinds)
    world.kinds.set(api, { ...kind, schema: undefined, description: 'other' });
  world.reset();
  await waitFor(() => expect(store.get(kindsAtom)?.[0]?.description).toBe('other'));
  expect(screen.getByLabelText(/^Spec name/)).toHaveValue('g7.2');
});

it('an early visitor sees the form as soon as its schema is known', async () => {
  const world = new World();
  const kind = world.kinds.get('stock-pool')!;
  world.kinds.set('stock-pool', { ...kind, schema: undefined });
  open(`/new?kind=${kindPath(kind)}`, world);
  expect(await screen.findByText(/^Could not load the form/)).toBeVisible();
  expect(screen.queryByRole('button', { name: CREATE })).toBeNull();
  world.kinds.set('stock-pool', kind);
  expect(await screen.findByLabelText(/^Spec name/)).toBeVisible();
});

it('a preview without an answer is requested again', async () => {
  const world = new World();
  world.refuse('POST', /preview$/, {
    status: 502,
    detail: 'The Kubernetes API does not respond.',
    lasts: true,
  });
  const { user } = open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`, world);
  const preview = await screen.findByRole('region', { name: 'Preview' });
  const again = await within(preview).findByRole('button', { name: 'Try again' });
  world.relent();
  await user.click(again);
  expect(await within(preview).findByText(/Creates \d+ resources?\./)).toBeVisible();
  expect(within(preview).queryByText('The Kubernetes API does not respond.')).toBeNull();
});

const PEM = [
  '-----BEGIN OPENSSH PRIVATE KEY-----',
  'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW',
  'QyNTUxOQAAACDjKqp5Fc65tEnRulDqKii7Gm4B+QvaJFotHYdpfRiSZQ',
  '-----END OPENSSH PRIVATE KEY-----',
].join('\n');

describe('a private key', () => {
  it('in a field is reported immediately, and neither sent nor stored', async () => {
    const { world, user } = open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`);
    const keys = await screen.findByLabelText(/^SSH public keys/);
    const preview = screen.getByRole('region', { name: 'Preview' });
    await within(preview).findByText(/Creates \d+ resources?\./);
    await user.clear(screen.getByLabelText(/^Name\b/));
    await user.type(screen.getByLabelText(/^Name\b/), 'mine');
    const sent: string[] = [];
    const fetch = globalThis.fetch;
    vi.stubGlobal('fetch', async (request: Request) => {
      sent.push(await request.clone().text());
      return fetch(request);
    });
    await user.click(keys);
    await user.paste(`\n${PEM}`);
    expect(keys).toHaveAccessibleDescription(/This is a private key\. It has not left this page\./);
    await user.click(screen.getByRole('button', { name: CREATE }));
    await new Promise((done) => setTimeout(done, 600));
    expect(sent.filter((body) => body.includes('PRIVATE') || body.includes('b3Blbn'))).toEqual([]);
    expect(world.asked).not.toContain('POST /api/v1/environments');
    expect(JSON.stringify(Object.entries(sessionStorage))).toContain('mine');
    expect(JSON.stringify(Object.entries(sessionStorage))).not.toMatch(/PRIVATE|b3Blbn/);
    await expectAccessible();
  });

  it('is found whole or in part, unlike a public key', () => {
    for (const text of [
      PEM,
      PEM.split('\n')[1]!,
      'PuTTY-User-Key-File-3: ssh-ed25519',
      `MIIEpAIBAAKCAQEA${'A'.repeat(48)}`,
      '-----BEGIN RSA PRIVATE KEY-----',
    ])
      expect(holdsPrivateKey(text)).toBe(true);
    for (const text of [
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop',
      'my private key',
      'MIISSING',
      '-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ',
    ])
      expect(holdsPrivateKey(text)).toBe(false);
    expect(
      privateKeysIn({ parameters: { a: 'x', keys: ['y', ...PEM.split('\n')], env: { K: PEM } } }),
    ).toEqual([
      ['parameters', 'keys'],
      ['parameters', 'env', 'K'],
    ]);
  });

  it('is not sent or stored by any page', async () => {
    const { world } = open('/keys');
    await screen.findByText('ada@laptop');
    await expect(
      answer(api.PUT('/api/v1/keys', { body: { keys: PEM.split('\n') } })),
    ).rejects.toThrow(/private key/);
    await expect(
      answer(api.POST('/api/v1/preview', { body: { kind: 'X', metadata: {}, spec: { a: PEM } } })),
    ).rejects.toThrow(/private key/);
    expect(world.asked.filter((one) => !one.startsWith('GET'))).toEqual([]);
  });
});

describe('a GPU workspace without SSH access', () => {
  it('has a warning in the form and in the preview, and allows the own address', async () => {
    const { user } = open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`);
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(await within(preview).findByText(/SSH is closed/)).toBeVisible();
    expect(screen.getByRole('note')).toHaveTextContent(
      /no network is allowed\. Add one under Allowed CIDRs\./,
    );
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Allow my address (203.0.113.7/32)' }));
    expect(screen.getByLabelText(/^Allowed CIDRs/)).toHaveValue('203.0.113.7/32');
    await waitFor(() => expect(screen.queryByRole('note')).toBeNull());
    expect(within(preview).queryByText(/SSH is closed/)).toBeNull();
  });
});

describe('a workspace without an SSH key', () => {
  it('has a note in the form until a key is added', async () => {
    const world = new World();
    world.keys = [];
    const { user } = open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`, world);
    expect(await screen.findByText(/No SSH key: you will connect by AWS/)).toHaveTextContent(
      /Add a key under SSH public keys/,
    );
    await expectAccessible();
    await user.type(screen.getByLabelText(/^SSH public keys/), 'ssh-ed25519 AAAA ada');
    await waitFor(() => expect(screen.queryByText(/No SSH key/)).toBeNull());
  });

  it('has no note with the keys of the user', async () => {
    open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`);
    await screen.findByLabelText(/^SSH public keys/);
    expect(screen.queryByText(/No SSH key/)).toBeNull();
  });
});

describe('the known values of a field', () => {
  const machine = {
    value: 'g5.xlarge',
    description: '1 × NVIDIA A10G (22 GiB), 4 vCPUs, 16 GiB',
    hourlyUSD: '1.006',
  };
  const small = { value: 'g4dn.xlarge', description: '1 × NVIDIA T4 (16 GiB)' };
  const opened = async (closed = true) => {
    const world = new World();
    world.options = [
      { field: 'spec.parameters.instanceType', closed, options: [small, machine] },
      { field: 'spec.parameters.unknown', closed, options: [machine] },
    ];
    const { user } = open(`/new?kind=${kindPath(kindOf('gpu-workspace'))}`, world);
    return { user, field: await screen.findByRole('combobox', { name: /^Instance type/ }) };
  };

  it('are a list with description and price that typing searches', async () => {
    const { field, user } = await opened();
    await user.click(field);
    const list = screen.getByRole('listbox', { name: 'Choices for Instance type' });
    const options = () =>
      within(list)
        .getAllByRole('option')
        .map((one) => one.textContent);
    expect(options()).toHaveLength(2);
    await user.clear(field);
    await user.type(field, 'a10g');
    expect(options()).toEqual([
      'g5.xlarge1 × NVIDIA A10G (22 GiB), 4 vCPUs, 16 GiB$1.006 per hour',
    ]);
    await user.keyboard('{ArrowDown}{Enter}');
    expect(field).toHaveValue('g5.xlarge');
    expect(field).toHaveAttribute('aria-expanded', 'false');
  });

  it('are chosen by a click, and closed by Escape', async () => {
    const { field, user } = await opened();
    await user.click(field);
    await user.click(screen.getByText('g5.xlarge'));
    expect(field).toHaveValue('g5.xlarge');
    await user.click(field);
    expect(screen.getByRole('listbox')).toBeVisible();
    await expectAccessible();
    await user.keyboard('{Escape}');
    expect(screen.queryByRole('listbox')).toBeNull();
  });

  it('reject a value outside the offer in one sentence with the nearest value', async () => {
    const { field, user } = await opened();
    await user.clear(field);
    await user.type(field, 'g4dn.xlrage');
    await user.tab();
    expect(field).toHaveAccessibleDescription(
      /^g4dn.xlrage is not offered. Choose g4dn.xlarge, g5.xlarge. Nearest: g4dn.xlarge EC2/,
    );
  });

  it('allow other values if the offer may be incomplete', async () => {
    const { field, user } = await opened(false);
    await user.clear(field);
    await user.type(field, 'g6.xlarge');
    await user.tab();
    expect(field).not.toHaveAttribute('aria-invalid', 'true');
  });
});
