import { cleanup, configure } from '@testing-library/react';
import { afterEach } from 'vitest';

// Timeout of findBy and waitFor in milliseconds, long enough for a busy machine.
configure({ asyncUtilTimeout: 20_000 });

// What jsdom lacks and the page uses.
class Observer {
  observe(): void {
    /* sizes never change here */
  }
  unobserve(): void {
    /* nothing to undo */
  }
  disconnect(): void {
    /* nothing to undo */
  }
}
globalThis.ResizeObserver = Observer;
Element.prototype.scrollIntoView = () => {
  /* nothing is laid out here */
};
HTMLCanvasElement.prototype.getContext = () => null; // nothing is painted here
globalThis.matchMedia = (query: string) =>
  ({
    matches: false,
    media: query,
    addEventListener() {
      /* the preference never changes here */
    },
    removeEventListener() {
      /* nothing to undo */
    },
  }) as unknown as MediaQueryList;

afterEach(() => {
  cleanup();
  localStorage.clear();
  location.hash = '';
});
