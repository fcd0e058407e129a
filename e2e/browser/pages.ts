import type { Locator, Page } from '@playwright/test';
import { expect } from './people.ts';

/** A kind that can be made: what people call it, and the group that tells its flavours apart. */
export interface Kind {
  title: string;
  group?: 'platform.acme.io' | 'platform.m.acme.io';
}

/** Goes to one of the pages that are always at hand. */
export async function go(page: Page, to: 'Environments' | 'Operations' | 'SSH keys'): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: to }).click();
}

/** Chooses a kind, and gives the new environment its name; the rest of the form is left to be filled in. */
export async function begin(page: Page, { title, group = 'platform.acme.io' }: Kind, name: string): Promise<void> {
  await go(page, 'Environments');
  await page.getByRole('main').getByRole('link', { name: 'New environment' }).click();
  await page.getByRole('listitem').filter({ hasText: `${group}/v1alpha1` }).getByRole('link', { name: title }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
}

/** Sends the form off; it leads to the new environment's page. */
export async function make(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^Create (?!anyway)/ }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
}

/** A GPU workspace that is reached by ssh from the office. */
export async function makeWorkspace(page: Page, name: string, group?: Kind['group']): Promise<void> {
  await begin(page, { title: 'GPU workspace', group }, name);
  await page.getByRole('textbox', { name: 'SSH public keys' }).fill(KEY);
  await page.getByRole('textbox', { name: 'Allowed CIDRs' }).fill('203.0.113.0/24');
  await make(page, name);
}

/** The public half of nobody's key. */
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop';

/** Somebody's card in the list of environments. */
export function card(page: Page, name: string): Locator {
  return page.getByRole('list', { name: 'Environments' }).getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
}

/** Goes to an environment's page by its card. */
export async function open(page: Page, name: string): Promise<void> {
  await go(page, 'Environments');
  await page.getByRole('link', { name, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
}

/** What an environment is made of. */
export function tree(page: Page): Locator {
  return page.getByRole('list', { name: 'Resources' });
}

/** A part in there: its text begins with its state. */
export function part(page: Page, name: string): Locator {
  return tree(page).getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) }).last();
}

/** How many parts are ready, or gone. */
export function progress(page: Page): Locator {
  return page.getByRole('main').getByRole('progressbar');
}

/** All parts of it are ready. */
export const COMPLETE = /^(\d+) of \1 resources ready$/;

/** Asks for an environment's deletion as one must: by its name. */
export async function remove(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').fill(name);
  await dialog.getByRole('button', { name: 'Delete environment' }).click();
}

/** Changes one field of an environment. */
export async function change(page: Page, field: string, value: string): Promise<void> {
  await page.getByRole('tab', { name: 'Change' }).click();
  await page.getByRole('textbox', { name: field }).or(page.getByRole('spinbutton', { name: field })).fill(value);
  await page.getByRole('button', { name: 'Save changes' }).click();
}

/** What was copied last. */
export function clipboard(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}
