import { screen, waitFor, within } from '@testing-library/react';
import type { UserEvent } from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { kindPath } from '../src/kinds/metadata';
import { growing, uiOf, type Schema } from '../src/kinds/schema';
import { faultsIn } from '../src/kinds/validate';
import { expectAccessible, open } from './app';
import { kindOf } from './data';
import { World } from './world';

async function chooseType(user: UserEvent): Promise<void> {
  const type = await screen.findByLabelText(/^Instance type/);
  await user.clear(type);
  await user.type(type, 'g5.xlarge');
}

/** Another user changes the only environment. */
function edit(world: World, parameters: object): void {
  const stored = [...world.environments.values()][0]!;
  stored.spec = {
    ...stored.spec,
    parameters: { ...(stored.spec['parameters'] as object), ...parameters },
  };
  world.change(stored.view, {});
}

/** The number of changes sent. */
function puts({ asked }: World): number {
  return asked.filter((one) => one.startsWith('PUT ')).length;
}

describe('a change', () => {
  const ADA = `/environments/team-vision/${kindPath(kindOf('gpu-workspace'))}/ada?tab=change`;
  const world = () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
    return world;
  };

  it('disables fixed fields, and explains the reason', async () => {
    open(ADA, world());
    expect(await screen.findByLabelText(/^OpenCV version/)).toBeDisabled();
    expect(screen.getByLabelText(/^OpenCV version/)).toHaveAccessibleDescription(
      /cannot be changed\s+later\.[^]*install another release with pip/,
    );
    expect(screen.getByLabelText(/^SSH public keys/)).toBeDisabled();
    expect(screen.getByLabelText(/^Instance type/)).toBeEnabled();
    expect(screen.getByRole('button', { name: 'Save changes' })).toBeDisabled();
    await expectAccessible();
  });

  it('prevents growing fields from shrinking', () => {
    const schema = kindOf('gpu-workspace').schema as Schema;
    const grown = growing(schema, { parameters: { diskGB: 200 } });
    expect(faultsIn(grown, { parameters: { owner: 'a', diskGB: 199 } })).toEqual([
      { path: ['parameters', 'diskGB'], message: 'At least 200' },
    ]);
    expect(uiOf(grown, { parameters: {} })).toMatchObject({
      parameters: { region: { 'ui:disabled': true } },
    });
  });

  it('disables the type of an environment without parameters', () => {
    const schema = kindOf('virtual-environment').schema as Schema;
    for (const spec of [{}, { parameters: {} }]) {
      expect(uiOf(schema, spec)).toMatchObject({ parameters: { type: { 'ui:disabled': true } } });
      // A new app may have any namespace.
      expect(uiOf(schema, spec)).not.toMatchObject({
        parameters: { app: { namespace: { 'ui:disabled': true } } },
      });
    }
    expect(uiOf(schema)).not.toMatchObject({ parameters: { type: { 'ui:disabled': true } } });
  });

  it('is sent with the version that was read, and with Crossplane’s fields', async () => {
    const there = world();
    const { user } = open(ADA, there);
    await chooseType(user);
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await screen.findByText('ada is being changed');
    expect(screen.getByRole('heading', { level: 1 })).toHaveFocus();
    const { spec } = [...there.environments.values()][0]!;
    expect(spec).toMatchObject({
      parameters: { instanceType: 'g5.xlarge', owner: 'ada@acme.io' },
      writeConnectionSecretToRef: { name: 'ada-conn' },
    });
  });

  it('shows which resources change, and how', async () => {
    const { user } = open(ADA, world());
    const preview = await screen.findByRole('region', { name: 'Preview' });
    expect(within(preview).getByText('Change a field to see what the change does.')).toBeVisible();
    await chooseType(user);
    expect(await within(preview).findByText('Changes 1 resource.')).toBeVisible();
    expect(within(preview).getByText(/→ g5\.xlarge/)).toBeVisible();
    await expectAccessible();
  });

  it('that the function rejects is reported at its field, and saved on confirmation', async () => {
    const there = world();
    there.unknownTypes.add('g5.xlarge');
    const { user } = open(ADA, there);
    await chooseType(user);
    // Immediately, before the automatic preview has a response.
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    expect(
      await screen.findByText(
        /This would be rejected\. Fix the marked fields, or save it anyway\./,
      ),
    ).toBeVisible();
    expect(screen.getByLabelText(/^Instance type/)).toHaveAccessibleDescription(
      /allowed: a GPU machine/,
    );
    expect(puts(there)).toBe(0);
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await waitFor(() => expect(screen.getByLabelText(/^Instance type/)).toHaveFocus());
    expect(puts(there)).toBe(0);
    await user.click(screen.getByRole('button', { name: 'Save anyway' }));
    await screen.findByText('ada is being changed');
    expect(puts(there)).toBe(1);
  });

  it('is saved without a preview', async () => {
    const there = world();
    there.refuse('POST', /preview$/, {
      status: 502,
      detail: 'The cluster’s Compositions cannot be read just now.',
      lasts: true,
    });
    const { user } = open(ADA, there);
    await chooseType(user);
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await screen.findByText('ada is being changed');
    expect(puts(there)).toBe(1);
  });

  it('explains a faster change, adopts it, and keeps the user’s own values', async () => {
    const there = world();
    const { user } = open(ADA, there);
    await chooseType(user);
    edit(there, { diskGB: 300, allowedCidrs: ['192.0.2.0/24'] });
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    expect(await screen.findByText('Someone else changed this environment')).toBeVisible();
    expect(screen.getByText(/Someone else changed Allowed CIDRs, Disk\./)).toBeVisible();
    expect(screen.getByLabelText(/^Disk/)).toHaveValue(300);
    expect(screen.getByLabelText(/^Allowed CIDRs/)).toHaveValue('192.0.2.0/24');
    await expectAccessible();
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await screen.findByText('ada is being changed');
    expect([...there.environments.values()][0]!.spec['parameters']).toMatchObject({
      instanceType: 'g5.xlarge',
      diskGB: 300,
      allowedCidrs: ['192.0.2.0/24'],
    });
  });

  it('is sent again without a question after a change by the cluster', async () => {
    const there = world();
    const { user } = open(ADA, there);
    await chooseType(user);
    there.change([...there.environments.values()][0]!.view, {
      message: 'instance (Instance): is being created',
    });
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await screen.findByText('ada is being changed');
    expect(screen.queryByText('Someone else changed this environment')).toBeNull();
    expect(puts(there)).toBe(2);
    expect([...there.environments.values()][0]!.spec['parameters']).toMatchObject({
      instanceType: 'g5.xlarge',
    });
  });

  it('is not sent again permanently', async () => {
    const there = world();
    const { user } = open(ADA, there);
    await chooseType(user);
    const conflict = {
      status: 409,
      detail: 'Operation cannot be fulfilled: the object has been modified',
    };
    Array.from({ length: 6 }, () => there.refuse('PUT', /ada$/, conflict));
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    expect(await screen.findByText(conflict.detail)).toBeVisible();
    expect(puts(there)).toBe(6);
  });

  it('is still there after a look at another view, until it is given up', async () => {
    const { user } = open(ADA, world());
    await chooseType(user);
    await user.click(screen.getByRole('tab', { name: 'YAML' }));
    await user.click(screen.getByRole('tab', { name: 'Change' }));
    expect(await screen.findByText('Changed: Instance type')).toBeVisible();
    expect(screen.getByLabelText(/^Instance type/)).toHaveValue('g5.xlarge');
    await user.click(screen.getByRole('button', { name: 'Cancel' }));
    expect(Object.keys(sessionStorage)).toEqual([]);
    await user.click(screen.getByRole('tab', { name: 'Change' }));
    expect(await screen.findByText('No changes')).toBeVisible();
  });

  it('that was kept over a sign-in reverts no change of another user', async () => {
    const there = world();
    const { user, unmount } = open(ADA, there);
    await chooseType(user);
    const { me } = there;
    there.me = undefined;
    there.reset('expired');
    await screen.findByRole('dialog', { name: 'Your session has ended' });
    unmount();
    edit(there, { diskGB: 300 });
    there.me = me;
    const again = open(ADA, there);
    expect(await screen.findByLabelText(/^Instance type/)).toHaveValue('g5.xlarge');
    expect(screen.getByLabelText(/^Disk/)).toHaveValue(300);
    expect(screen.getByText('Changed: Instance type')).toBeVisible();
    expect(screen.getByText(/Someone else changed Disk\./)).toBeVisible();
    // Until the change is saved, the message appears again after a look at another view.
    await again.user.click(screen.getByRole('tab', { name: 'YAML' }));
    await again.user.click(screen.getByRole('tab', { name: 'Change' }));
    expect(await screen.findByText(/Someone else changed Disk\./)).toBeVisible();
    await again.user.click(screen.getByRole('button', { name: 'Save changes' }));
    await screen.findByText('ada is being changed');
    expect([...there.environments.values()][0]!.spec['parameters']).toMatchObject({
      instanceType: 'g5.xlarge',
      diskGB: 300,
    });
  });

  it('disables existing values, also after a toggle, and allows new ones', async () => {
    const there = new World();
    there.add('virtual-environment', { name: 'preview', namespace: 'team-shop' });
    const { parameters } = [...there.environments.values()][0]!.spec as {
      parameters: { app?: { namespace: string } };
    };
    const preview = `/environments/team-shop/${kindPath(kindOf('virtual-environment'))}/preview?tab=change`;
    const app = () => screen.findByRole('switch', { name: 'App' });
    const namespace = async () =>
      within((await app()).closest<HTMLElement>('.optional')!).getByLabelText(/^Namespace/);
    const { user, unmount } = open(preview, there);
    await user.click(await app());
    await user.click(await app());
    expect(await namespace()).toBeDisabled();
    expect(await namespace()).toHaveValue(parameters.app!.namespace);
    expect(screen.getByText('No changes')).toBeVisible();
    unmount();
    delete parameters.app;
    const again = open(preview, there);
    await again.user.click(await app());
    expect(await namespace()).toBeEnabled();
  });

  it('is not submitted with marked errors', async () => {
    const there = new World();
    there.add('unified-environment', { name: 'shop', namespace: 'team-shop' });
    const { user } = open(
      `/environments/team-shop/${kindPath(kindOf('unified-environment'))}/shop?tab=change`,
      there,
    );
    const env = await screen.findByLabelText('Environment variables');
    await user.type(env, '{Enter}A=1{Enter}B');
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    await waitFor(() => expect(env).toHaveFocus());
    expect(puts(there)).toBe(0);
  });
});
