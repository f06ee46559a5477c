import { useSyncExternalStore } from 'react';

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

/** The current theme. */
export function currentTheme(): Theme {
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

/** The current theme, for canvases. */
export function useTheme(): Theme {
  return useSyncExternalStore(
    (l) => {
      listeners.add(l);
      return () => listeners.delete(l);
    },
    currentTheme,
    () => 'dark',
  );
}
