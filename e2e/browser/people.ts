import { expect, test as base, type BrowserContext, type Page } from '@playwright/test';
import { listen } from './looks.ts';
import { world, type Account } from './world.ts';

type Name = 'ada' | 'bob';
type Session = Awaited<ReturnType<BrowserContext['storageState']>>;

interface People {
  /** The page of ada, signed in. */
  ada: Page;
  /** The page of bob, signed in to another team. */
  bob: Page;
  /** Opens a page for a person in one more browser. */
  another: (name: Name) => Promise<Page>;
  /** Errors that browsers report on the pages. A test fails if one remains at its end. */
  complaints: string[];
}

interface Sessions {
  /** A person's session. Each person signs in once. */
  sessionOf: (name: Name) => Promise<Session>;
}

export const test = base.extend<People, Sessions>({
  ada: async ({ another }, use) => use(await another('ada')),
  bob: async ({ another }, use) => use(await another('bob')),
  complaints: async ({}, use) => {
    const complaints: string[] = [];
    await use(complaints);
    expect(complaints).toEqual([]);
  },
  context: async ({ context, complaints }, use) => {
    await listen(context, complaints);
    await use(context);
  },
  another: async ({ browser, sessionOf, complaints }, use) => {
    const opened: BrowserContext[] = [];
    await use(async (name) => {
      const context = await browser.newContext({ baseURL: world[name].portal, storageState: await sessionOf(name) });
      opened.push(context);
      await listen(context, complaints);
      const page = await context.newPage();
      await page.goto('/');
      return page;
    });
    await Promise.all(opened.map((context) => context.close()));
  },
  sessionOf: [
    async ({ browser }, use) => {
      const sessions = new Map<Name, Promise<Session>>();
      const begin = async (name: Name) => {
        const context = await browser.newContext({ baseURL: world[name].portal });
        const page = await context.newPage();
        await page.goto('/');
        await signIn(page, world[name]);
        const session = await context.storageState();
        await context.close();
        return session;
      };
      await use((name) => {
        const session = sessions.get(name) ?? begin(name);
        sessions.set(name, session);
        return session;
      });
    },
    { scope: 'worker' },
  ],
});

/** Signs in from the portal's first page. The provider asks for a login, then for consent. */
export async function signIn(page: Page, { login }: Account): Promise<void> {
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.getByPlaceholder('Enter any login').fill(login);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page.getByText(login, { exact: true })).toBeVisible();
}

/** For the work of clouds and clusters, which takes long on a busy machine. */
export const eventually = expect.configure({ timeout: 480_000 });

export { expect };
