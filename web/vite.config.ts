import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vitest/config';

/** The portal behind `npm run dev`. */
const PORTAL = process.env['PORTAL'] ?? 'http://localhost:8080';

export default defineConfig(({ mode }) => ({
  plugins: [react(), sent(), mode === 'world' && pretend()],
  resolve: {
    alias: {
      'markdown-to-jsx/react': fileURLToPath(
        new URL('src/components/markdown.ts', import.meta.url),
      ),
    },
  },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    manifest: 'manifest.json',
    chunkSizeWarningLimit: 600,
    // Files that every page needs are one file.
    rolldownOptions: {
      output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } },
    },
  },
  server: { proxy: mode === 'world' ? {} : proxy() },
  test: {
    environment: 'jsdom',
    environmentOptions: { jsdom: { url: 'http://portal.test/' } },
    setupFiles: ['tests/setup.ts'],
    include: ['tests/**/*.test.{ts,tsx}'],
    testTimeout: 300_000,
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
  },
}));

/**
 * The portal accepts writes only from its own pages. Requests through this proxy therefore have the
 * portal's address as origin.
 */
function proxy() {
  const target = { target: PORTAL, changeOrigin: true, headers: { origin: PORTAL } };
  return { '/api': target, '/auth': target, '/ws': { ...target, ws: true } };
}

/** Sends built pages as the portal does: compressed, and with its security headers. */
function sent(): Plugin {
  return {
    name: 'sent-as-by-the-portal',
    async configurePreviewServer(server) {
      const { packed, protective } = await import('./tests/serve.ts');
      server.middlewares.use(protective);
      server.middlewares.use(packed);
    },
  };
}

/** Serves a fake portal beside the pages, to view pages without a cluster. Test equipment only. */
function pretend(): Plugin {
  return {
    name: 'pretend-portal',
    async configureServer(server) {
      const { middleware } = await import('./tests/serve.ts');
      server.middlewares.use(middleware());
    },
    async configurePreviewServer(server) {
      const { middleware } = await import('./tests/serve.ts');
      server.middlewares.use(middleware());
    },
  };
}
