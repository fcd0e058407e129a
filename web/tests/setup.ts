import '@testing-library/jest-dom/vitest';
import { cleanup, configure } from '@testing-library/react';
import { afterEach, beforeEach, vi } from 'vitest';

// Pages that are loaded on demand are also compiled on demand.
configure({ asyncUtilTimeout: 60_000 });
// Clocks stand still, so texts about time do not depend on the machine. Timers run.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => {
  vi.useRealTimers();
  cleanup();
  // Drafts stay in the storage of a tab, but tests must not share them.
  if ('sessionStorage' in globalThis) sessionStorage.clear();
});

// Browser features that jsdom lacks.
Object.assign(window, {
  matchMedia: (query: string) => ({
    matches: false,
    media: query,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }),
  ResizeObserver: class {
    observe = () => undefined;
    unobserve = () => undefined;
    disconnect = () => undefined;
  },
  scrollTo: () => undefined,
});
Element.prototype.scrollIntoView = () => undefined;
// axe calls this to detect icon fonts, and works without it.
HTMLCanvasElement.prototype.getContext = () => null;

// As in index.html.
document.documentElement.lang = 'en';
