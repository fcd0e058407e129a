import { readFileSync } from 'node:fs';
import type { BrowserContext, Page } from '@playwright/test';
import { world } from './world.ts';

/** axe from the pages' own development dependencies. */
const AXE = readFileSync(new URL('../../web/node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** The widths at which every page must be readable: a phone and a laptop. */
const WIDTHS = [390, 1280];

const SCHEMES = ['light', 'dark'] as const;

interface Violation {
  id: string;
  nodes: { target: string[] }[];
}
interface Axe {
  run: (context: Document, options: object) => Promise<{ violations: Violation[] }>;
}

/**
 * Records errors that a browser reports on the portal's pages. Failed requests are left out,
 * because the pages themselves show them.
 */
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

/**
 * The accessibility faults of a page in both colour schemes, on a phone and on a laptop: colours,
 * names, structure and overflow.
 */
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

/**
 * The longest wait for animations, in milliseconds. Animations of a collapsed element never finish.
 */
const MOVING = 2000;

/** Waits until animations have ended: half-faded text fails the contrast check. */
async function settled(page: Page, colorScheme: string): Promise<void> {
  await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor({ state: 'attached' });
  await page.evaluate((longest) => {
    const still = Promise.allSettled(document.getAnimations().map(({ finished }) => finished));
    const late = new Promise((resolve) => setTimeout(resolve, longest));
    return Promise.race([still, late]).then(() => undefined);
  }, MOVING);
}

async function violations(page: Page): Promise<string[]> {
  // Evaluate axe as developer tools do, because the portal forbids scripts of other origins.
  await page.evaluate(`${AXE};0`);
  return page.evaluate(async () => {
    // Check the styles as applied, without fetching them again.
    const { violations } = await (window as unknown as { axe: Axe }).axe.run(document, { preload: false });
    return violations.map(({ id, nodes }) => `${id} at ${nodes.slice(0, 3).map(({ target }) => target.join(' ')).join(', ')}`);
  });
}
