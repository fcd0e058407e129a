import { defineConfig } from '@playwright/test';
import { world } from './world.ts';

const SECOND = 1000;

export default defineConfig({
  testDir: 'specs',
  // The tests of a specification tell one story: later tests use the environments of earlier ones.
  workers: 1,
  retries: 0,
  maxFailures: 1,
  forbidOnly: true,
  reporter: 'list',
  // Generous limits, because other scenarios keep the machine busy meanwhile.
  timeout: 600 * SECOND,
  expect: { timeout: 90 * SECOND },
  use: {
    baseURL: world.ada.portal,
    actionTimeout: 90 * SECOND,
    navigationTimeout: 90 * SECOND,
    permissions: ['clipboard-read', 'clipboard-write'],
    screenshot: 'only-on-failure',
    trace: { mode: 'retain-on-failure', screenshots: false, snapshots: true, sources: false },
    launchOptions: {
      executablePath: '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    },
  },
});
