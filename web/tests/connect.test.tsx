import { act, screen, waitFor, within } from '@testing-library/react';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible, open } from './app';

import { World } from './world';

const G = 'platform.acme.io';

const at = (plural: string, name: string) => `/environments/team-vision/${plural}.${G}/${name}`;

describe('connecting', () => {
  it('has the commands, the editor link and the ssh name of a machine first', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision' });
    open(at('gpudevworkspaceclaims', 'ada'), world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(connect).toHaveTextContent('paved connect ada -n team-vision');
    expect(connect).toHaveTextContent('ssh ada.team-vision.paved');
    expect(within(connect).getByRole('link', { name: 'Open in VS Code' })).toHaveAttribute(
      'href',
      'vscode://vscode-remote/ssh-remote+ada.team-vision.paved/home/developer',
    );
    const resources = screen.getByRole('region', { name: 'Resources' });
    expect(connect.compareDocumentPosition(resources)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
    await expectAccessible();
  });

  it('a failed environment shows its resources first, and no command', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', stage: 'failing' });
    open(at('gpudevworkspaceclaims', 'ada'), world);
    const connect = await screen.findByRole('region', { name: 'Connect' });
    expect(connect).not.toHaveTextContent('paved connect');
    const resources = screen.getByRole('region', { name: 'Resources' });
    expect(connect.compareDocumentPosition(resources)).toBe(Node.DOCUMENT_POSITION_PRECEDING);
  });

  it('a button allows the own address where SSH is closed', async () => {
    const world = new World();
    world.add('gpu-workspace', { name: 'ada', namespace: 'team-vision', sshClosed: true });
    const sent = vi.fn();
    world.patched = sent;
    const { user } = open(at('gpudevworkspaceclaims', 'ada'), world);
    await user.click(
      await screen.findByRole('button', { name: 'Allow my address (203.0.113.7/32)' }),
    );
    await waitFor(() =>
      expect(sent).toHaveBeenCalledWith({
        spec: { parameters: { allowedCidrs: ['203.0.113.7/32'] } },
      }),
    );
    expect(await screen.findByText('SSH from 203.0.113.7/32 is being allowed')).toBeVisible();
  });

  it('the kubeconfig is a file, and is read only on a click', async () => {
    const world = new World();
    world.add('virtual-environment', { name: 'preview', namespace: 'team-vision' });
    const saved: string[] = [];
    vi.stubGlobal(
      'URL',
      Object.assign(URL, { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} }),
    );
    vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (
      this: HTMLAnchorElement,
    ) {
      saved.push(this.download);
    });
    const { user } = open(at('environments', 'preview'), world);
    const button = await screen.findByRole('button', { name: 'Download kubeconfig' });
    expect(world.asked.filter((one) => one.includes('connection'))).toEqual([]);
    await user.click(button);
    await waitFor(() => expect(saved).toEqual(['preview.kubeconfig']));
    expect(document.body).not.toHaveTextContent('kind: Config');
  });
});

describe('an arrival', () => {
  it('is a notice, and the title of a window in the background', async () => {
    const world = new World();
    const view = world.add('gpu-workspace', {
      name: 'ada',
      namespace: 'team-vision',
      stage: 'half-way',
    });
    open('/', world);
    await screen.findByText('ada');
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    void act(() => world.change(view, { phase: 'Ready', ready: true, failed: false }));
    expect(await screen.findByText('ada is ready')).toBeVisible();
    await waitFor(() => expect(document.title).toBe('ada is ready · Paved Road'));
    hidden.mockReturnValue(false);
    act(() => void document.dispatchEvent(new Event('visibilitychange')));
    await waitFor(() => expect(document.title).toBe('My environments · Paved Road'));
  });
});
