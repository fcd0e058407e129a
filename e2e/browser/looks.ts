import { readFileSync } from 'node:fs';
import type { BrowserContext, Page } from '@playwright/test';
import { world } from './world.ts';

/** The pages bring it along for their own tests. */
const AXE = readFileSync(new URL('../../web/node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** The widths at which everything must be readable: a phone and a laptop. */
const WIDTHS = [390, 1280];

const SCHEMES = ['light', 'dark'] as const;

interface Violation {
  id: string;
  nodes: { target: string[] }[];
}
interface Axe {
  run: (context: Document, options: object) => Promise<{ violations: Violation[] }>;
}

/** Notes what a browser says is wrong with the portal's pages. That something was refused or did not answer, the pages tell themselves. */
export async function listen(context: BrowserContext, complaints: string[]): Promise<void> {
  const isOurs = (page: Page | null) => [world.ada, world.bob].some(({ portal }) => page?.url().startsWith(portal));
  context.on('console', (message) => {
    if (message.type() === 'error' && isOurs(message.page()) && !message.text().startsWith('Failed to load resource')) complaints.push(message.text());
  });
  context.on('weberror', (error) => {
    if (isOurs(error.page())) complaints.push(error.error().message);
  });
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => console.error(`${effectiveDirective} forbids ${blockedURI}`));
  });
}

/** What is wrong with a page for somebody, in both schemes, on a phone and on a laptop: colours, names, structure, and what sticks out. */
export async function faultsOf(page: Page): Promise<string[]> {
  const faults: string[] = [];
  const size = page.viewportSize();
  for (const colorScheme of SCHEMES) {
    for (const width of WIDTHS) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 900 });
      await settled(page, colorScheme);
      const where = `${new URL(page.url()).pathname} ${colorScheme} ${width}`;
      faults.push(...(await violations(page)).map((violation) => `${where}: ${violation}`));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (wide > 0) faults.push(`${where}: scrolls sideways by ${wide} px`);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  if (size) await page.setViewportSize(size);
  return faults;
}

/** The longest that anything moves, in milliseconds. What is folded away does not move on, and would be waited for ever. */
const MOVING = 2000;

/** Waits until everything stands in its colours: what is half faded in is too pale. */
async function settled(page: Page, colorScheme: string): Promise<void> {
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor({ state: 'attached' });
  await page.evaluate((longest) => {
    const still = Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
    const late = new Promise((resolve) => setTimeout(resolve, longest));
    return Promise.race([still, late]).then(() => undefined);
  }, MOVING);
}

async function violations(page: Page): Promise<string[]> {
  // As the browser's own tools do it: the portal forbids scripts that it has not sent.
  await page.evaluate(`${AXE};0`);
  return page.evaluate(async () => {
    // Styles are looked at as they apply, and not fetched once more.
    const { violations } = await (window as unknown as { axe: Axe }).axe.run(document, { preload: false });
    return violations.map(({ id, nodes }) => `${id} at ${nodes.slice(0, 3).map(({ target }) => target.join(' ')).join(', ')}`);
  });
}
