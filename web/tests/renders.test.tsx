import { act, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { open } from './app';
import { World } from './world';

const drawn = vi.hoisted(() => new Map<string, number>());

// Each card has one progress bar. Its text is unique, so it identifies and counts the card's
// renders.
vi.mock('../src/components/Progress', () => ({
  Progress: ({ text }: { text: string }) => {
    drawn.set(text, (drawn.get(text) ?? 0) + 1);
    return <span>{text}</span>;
  },
}));

/** The renders of each card since the last call, after all are done. */
async function drawnSince(): Promise<[string, number][]> {
  await act(() => new Promise((resolve) => setTimeout(resolve, 200)));
  const since = [...drawn];
  drawn.clear();
  return since;
}

it('draws the one card that has changed, of 100', async () => {
  const world = new World();
  const views = Array.from({ length: 100 }, (_, index) =>
    world.add('stock-pool', {
      name: `pool-${index}`,
      namespace: 'team',
      progress: `0/${index + 1}`,
    }),
  );
  open('/', world);
  // Not by role, because computing the names of 100 cards takes longer than rendering them.
  await waitFor(() => expect(document.querySelectorAll('.card')).toHaveLength(100));
  expect(await drawnSince()).toHaveLength(100);
  world.change(views[50]!, { progress: 'changed', message: 'something new' });
  await screen.findByText('something new');
  expect(await drawnSince()).toEqual([['changed', 1]]);
  // Lists filter and sort by phase. A new phase renders the list again, but not the other cards.
  world.change(views[23]!, { phase: 'Progressing', ready: false, message: 'on its way' });
  await screen.findByText('on its way');
  expect(await drawnSince()).toEqual([['0/24', 1]]);
  world.beat();
  expect(await drawnSince()).toEqual([]);
  // After a break the page gets all 100 environments again, and one of them has changed.
  world.restart();
  world.change(views[42]!, { message: 'meanwhile' });
  await screen.findByText('meanwhile');
  expect(await drawnSince()).toEqual([['0/43', 1]]);
  // Many changes of one environment within a moment are rendered together.
  for (let round = 0; round < 50; round++) world.change(views[7]!, { progress: `round ${round}` });
  await screen.findByText('round 49');
  expect([...drawn.values()].reduce((sum, times) => sum + times, 0)).toBeLessThan(5);
});
