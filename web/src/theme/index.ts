import { useSyncExternalStore } from 'react';
import { flushSync } from 'react-dom';

// The theme: the system's preference unless the user chose one.

export type Theme = 'dark' | 'light';

const key = 'chimbuko.theme';
const listeners = new Set<() => void>();
const system = matchMedia('(prefers-color-scheme: light)');

function chosen(): Theme | undefined {
  try {
    const t = localStorage.getItem(key);
    return t === 'dark' || t === 'light' ? t : undefined;
  } catch {
    return undefined; // no local storage: follow the system
  }
}

const print = matchMedia('print');

/** The current theme; on paper it is light. */
export function currentTheme(): Theme {
  if (print.matches) return 'light';
  return chosen() ?? (system.matches ? 'light' : 'dark');
}

/** Applies the theme to the page; call it before the first render. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = currentTheme();
}

function changed(): void {
  applyTheme();
  for (const l of [...listeners]) l();
}

/** Switches to the other theme. */
export function toggleTheme(): void {
  const next = currentTheme() === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(key, next);
  } catch {
    return; // no local storage
  }
  changed();
}

system.addEventListener('change', changed);
// The browser takes its picture as soon as listeners return.
print.addEventListener('change', () => flushSync(changed));

/** Whether the page is being printed. */
export function usePrinting(): boolean {
  return useSyncExternalStore(
    subscribe,
    () => print.matches,
    () => false,
  );
}

function subscribe(l: () => void): () => void {
  listeners.add(l);
  return () => listeners.delete(l);
}

/** The current theme, for canvases. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme, () => 'dark');
}
