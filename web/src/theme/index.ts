import { useSyncExternalStore } from 'react';

// Dark or light: what the system prefers, unless the reader chose.

export type Theme = 'dark' | 'light';

const key = 'chimbuko.theme';
const listeners = new Set<() => void>();
const system = matchMedia('(prefers-color-scheme: light)');

function chosen(): Theme | undefined {
  try {
    const t = localStorage.getItem(key);
    return t === 'dark' || t === 'light' ? t : undefined;
  } catch {
    return undefined; // storage is forbidden: the system decides
  }
}

/** The theme that holds now. */
export function currentTheme(): Theme {
  return chosen() ?? (system.matches ? 'light' : 'dark');
}

/** Makes the page follow the theme; called once, before anything is drawn. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = currentTheme();
}

function changed(): void {
  applyTheme();
  for (const l of [...listeners]) l();
}

/** The other theme, from now on. */
export function toggleTheme(): void {
  const next = currentTheme() === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(key, next);
  } catch {
    return; // nowhere to keep it
  }
  changed();
}

system.addEventListener('change', changed);

/** The theme, for what is drawn on a canvas. */
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
