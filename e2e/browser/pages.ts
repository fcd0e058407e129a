import type { Locator, Page } from '@playwright/test';
import { expect } from './people.ts';

/**
 * A kind that users can create: its title, and the group that tells claims and namespaced
 * composites apart.
 */
export interface Kind {
  title: string;
  group?: 'platform.acme.io' | 'platform.m.acme.io';
}

/** Opens a page from the navigation, which every page has. */
export async function go(page: Page, to: 'Environments' | 'Operations' | 'SSH keys'): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: to }).click();
}

/**
 * Selects a kind and fills in the name of the new environment. The caller fills in the other
 * fields.
 */
export async function begin(page: Page, { title, group = 'platform.acme.io' }: Kind, name: string): Promise<void> {
  await go(page, 'Environments');
  await page.getByRole('main').getByRole('link', { name: 'New environment' }).click();
  await page.getByRole('listitem').filter({ hasText: `${group}/v1alpha1` }).getByRole('link', { name: title }).click();
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
}

/** Submits the form, which opens the new environment's page. */
export async function make(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^Create (?!anyway)/ }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
}

/** Creates a GPU workspace that allows SSH from the office. */
export async function makeWorkspace(page: Page, name: string, group?: Kind['group']): Promise<void> {
  await begin(page, { title: 'GPU workspace', group }, name);
  await page.getByRole('textbox', { name: 'SSH public keys' }).fill(KEY);
  await page.getByRole('textbox', { name: 'Allowed CIDRs' }).fill('203.0.113.0/24');
  await make(page, name);
}

/** A public key without a known private key. */
export const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcE1jS2BvFskas8trZu8+v8qhFP45gtKswerSFXYPEP ada@laptop';

/** An environment's card in the list of environments. */
export function card(page: Page, name: string): Locator {
  return page.getByRole('list', { name: 'Environments' }).getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) });
}

/** Opens an environment's page from its card. */
export async function open(page: Page, name: string): Promise<void> {
  await go(page, 'Environments');
  await page.getByRole('link', { name, exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
}

/** The resource tree of an environment. */
export function tree(page: Page): Locator {
  return page.getByRole('list', { name: 'Resources' });
}

/** A resource in the tree. Its text begins with its state. */
export function part(page: Page, name: string): Locator {
  return tree(page).getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) }).last();
}

/** The progress bar of ready or deleted resources. */
export function progress(page: Page): Locator {
  return page.getByRole('main').getByRole('progressbar');
}

/** The progress text of an environment with all resources ready. */
export const COMPLETE = /^(\d+) of \1 resources ready$/;

/** Deletes an environment. The dialog requires its name. */
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

/** The text on the clipboard. */
export function clipboard(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}
