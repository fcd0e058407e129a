import { act, screen, waitFor } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { open } from './app';
import { World } from './world';

const drawn = vi.hoisted(() => new Map<string, number>());

// Each card draws one progress bar, whose text is here the card's own: so often was it drawn.
vi.mock('../src/components/Progress', () => ({
  Progress: ({ text }: { text: string }) => {
    drawn.set(text, (drawn.get(text) ?? 0) + 1);
    return <span>{text}</span>;
  },
}));

/** Which cards were drawn since, and how often, once everything is. */
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
  // Not by role: to compute the names of 100 cards takes longer than to draw them.
  await waitFor(() => expect(document.querySelectorAll('.card')).toHaveLength(100));
  expect(await drawnSince()).toHaveLength(100);
  world.change(views[50]!, { progress: 'changed', message: 'something new' });
  await screen.findByText('something new');
  expect(await drawnSince()).toEqual([['changed', 1]]);
  // By their phases lists are filtered and sorted: the list is another one then, and the other
  // cards are not.
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
  // Many changes of one within a moment are drawn at once.
  for (let round = 0; round < 50; round++) world.change(views[7]!, { progress: `round ${round}` });
  await screen.findByText('round 49');
  expect([...drawn.values()].reduce((sum, times) => sum + times, 0)).toBeLessThan(5);
});
