import type { Page } from '@playwright/test';
import { COMPLETE, progress, tree } from './pages.ts';
import { eventually, expect } from './people.ts';

/** The states of an environment's resources at one moment, by name. */
type States = Record<string, string>;

/**
 * A browser's entry for a layout shift (wicg.github.io/layout-instability). TypeScript's types lack
 * it.
 */
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

/** The highest cumulative layout shift of a good page (web.dev/articles/cls). */
const STEADY = 0.1;

/**
 * Watches a page while an environment is created. The returned function waits until the environment
 * is ready. It fails unless resources became ready one by one and the layout stayed steady.
 */
export async function watch(page: Page): Promise<() => Promise<void>> {
  const noted = await page.evaluateHandle(note);
  return async () => {
    await eventually(progress(page)).toHaveAccessibleName(COMPLETE);
    await expect(tree(page)).toBeVisible();
    await eventually(tree(page).locator('.dot').filter({ hasNotText: /^Ready$/ })).toHaveCount(0);
    const { moments, moves } = await noted.jsonValue();
    expect(new Set(Object.values(moments.at(-1) ?? {}))).toEqual(new Set(['Ready']));
    const steps = moments.map((states) => Object.values(states)).map((all) => ({ ready: all.filter((state) => state === 'Ready').length, of: all.length }));
    expect(steps.some(({ ready, of }) => ready < of && (ready > 0 || of === 1)), `ready one by one: ${JSON.stringify(steps)}`).toBe(true);
    const moved = moves.reduce((sum, { value }) => sum + value, 0);
    expect(moved, `how much of the page has moved: ${JSON.stringify(moves, null, 1)}`).toBeLessThan(STEADY);
  };
}

/**
 * Runs in the page. Records the resources' states at each change, so that none is missed, and the
 * layout shifts without user input.
 */
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
