import { act, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { open } from './app';
import { World } from './world';

const drawn = vi.hoisted(() => new Map<string, number>());

// Each card draws one progress bar: so often was it drawn.
vi.mock('../src/parts/Progress', () => ({
  Progress: ({ text }: { text: string }) => {
    drawn.set(text, (drawn.get(text) ?? 0) + 1);
    return <span>{text}</span>;
  },
}));

it('draws the one card that has changed, of 500', async () => {
  const world = new World();
  const views = Array.from({ length: 500 }, (_, index) => world.add('stock-pool', { name: `pool-${index}`, namespace: 'team', progress: `0/${index + 1}` }));
  open('/', world);
  // Not by role: to compute the names of 500 cards takes longer than to draw them.
  await waitFor(() => expect(document.querySelectorAll('.card')).toHaveLength(500), { timeout: 60_000 });
  drawn.clear();
  world.change(views[250]!, { progress: 'changed', message: 'something new' });
  await screen.findByText('something new');
  await act(() => new Promise((resolve) => setTimeout(resolve, 200)));
  expect([...drawn]).toEqual([['changed', 1]]);
  // Many changes of one within a moment are drawn at once.
  drawn.clear();
  for (let round = 0; round < 50; round++) world.change(views[7]!, { progress: `round ${round}` });
  await screen.findByText('round 49');
  expect([...drawn.values()].reduce((sum, times) => sum + times, 0)).toBeLessThan(5);
});
