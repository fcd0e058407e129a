import type { Page } from '@playwright/test';
import { COMPLETE, progress, tree } from './pages.ts';
import { eventually, expect } from './people.ts';

/** How parts fare at one moment, by their names. */
type States = Record<string, string>;

/** What browsers tell of a jump, as wicg.github.io/layout-instability has it: the types of TypeScript do not know it. */
interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: LayoutShiftSource[];
}

interface LayoutShiftSource {
  node: Node | null;
  previousRect: DOMRectReadOnly;
  currentRect: DOMRectReadOnly;
}

/** The most that a page may move under whoever reads it, as web.dev/articles/cls has it. */
const STEADY = 0.1;

/** Looks on from here while an environment is made. What is given back waits until it is ready: it has become so part by part, and nothing has jumped. */
export async function watch(page: Page): Promise<() => Promise<void>> {
  const noted = await page.evaluateHandle(note);
  return async () => {
    await eventually(progress(page)).toHaveAccessibleName(COMPLETE);
    await expect(tree(page)).toBeVisible();
    await eventually(tree(page).locator('.dot').filter({ hasNotText: /^Ready$/ })).toHaveCount(0);
    const { moments, moves } = await noted.jsonValue();
    expect(new Set(Object.values(moments.at(-1) ?? {}))).toEqual(new Set(['Ready']));
    const steps = moments.map((states) => Object.values(states)).map((all) => ({ ready: all.filter((state) => state === 'Ready').length, of: all.length }));
    expect(steps.some(({ ready, of }) => ready < of && (ready > 0 || of === 1)), `ready part by part: ${JSON.stringify(steps)}`).toBe(true);
    const moved = moves.reduce((sum, { value }) => sum + value, 0);
    expect(moved, `how much of the page has moved: ${JSON.stringify(moves, null, 1)}`).toBeLessThan(STEADY);
  };
}

/** Notes within a page what it shows of an environment's parts each time that it changes, so that nothing is missed, and how much moves there by itself. */
function note() {
  const noted = { moments: [] as States[], moves: [] as { value: number; what: string[] }[] };
  const look = () => {
    const leaves = Array.from(document.querySelectorAll('.leaf:has(.dot)'));
    const text = (leaf: Element, of: string) => leaf.querySelector(of)?.textContent ?? '';
    const states = Object.fromEntries(leaves.map((leaf) => [text(leaf, '.leaf-name'), text(leaf, '.dot')]));
    if (leaves.length > 0 && JSON.stringify(states) !== JSON.stringify(noted.moments.at(-1))) noted.moments.push(states);
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  new PerformanceObserver((list) => {
    if (!location.pathname.startsWith('/environments/')) return;
    const told = ({ node, previousRect, currentRect }: LayoutShiftSource) => `${node?.textContent?.slice(0, 40)}: ${previousRect.y} to ${currentRect.y}, ${previousRect.height} to ${currentRect.height} high`;
    const shifts = list.getEntries() as LayoutShift[];
    for (const { value, hadRecentInput, sources } of shifts) if (!hadRecentInput) noted.moves.push({ value, what: sources.map(told) });
  }).observe({ type: 'layout-shift' });
  return noted;
}
