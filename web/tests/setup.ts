import '@testing-library/jest-dom/vitest';
import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';

// Pages that are loaded on demand are compiled on demand, too.
configure({ asyncUtilTimeout: 60_000 });
afterEach(() => {
  cleanup();
  // What was typed stays in a tab, and every test has one of its own.
  if ('sessionStorage' in globalThis) sessionStorage.clear();
});

// What browsers have and jsdom has not.
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
// axe asks for it to see icons in fonts, and does without.
HTMLCanvasElement.prototype.getContext = () => null;

// What index.html says.
document.documentElement.lang = 'en';
