import { useCallback, useMemo, useSyncExternalStore } from 'react';
import { lasting, parse, write, type Route, type View } from './hash.ts';

// The address holds all view state; these hooks read and write it.

function subscribe(changed: () => void): () => void {
  window.addEventListener('hashchange', changed);
  return () => window.removeEventListener('hashchange', changed);
}

/** The current route. */
export function currentRoute(): Route {
  return parse(location.hash);
}

/** The current route; renders again when it changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => parse(hash), [hash]);
}

/** Parameter changes; undefined or '' removes one. */
export type Changes = Readonly<Record<string, string | number | undefined>>;

/** A link target. */
export interface Target {
  view?: View;
  event?: string;
  query?: Changes;
}

/**
 * Resolves a target against a route. The same view keeps all parameters, another view only the lasting ones; then the changes apply.
 */
export function follow(from: Route, to: Target): Route {
  const view = to.view ?? (to.event === undefined ? from.view : 'evidence');
  const query: Record<string, string> = {};
  for (const [k, v] of Object.entries(from.query)) {
    if (view === from.view || (lasting as readonly string[]).includes(k)) query[k] = v;
  }
  for (const [k, v] of Object.entries(to.query ?? {})) {
    if (v === undefined || v === '') Reflect.deleteProperty(query, k);
    else query[k] = String(v);
  }
  return { view, event: view === 'evidence' ? (to.event ?? from.event) : '', query };
}

/** Navigates. replace adds no history entry, for changes during mouse moves. */
export function go(to: Target, replace = false): void {
  const hash = write(follow(currentRoute(), to));
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(history.state ?? { depth: newest }, '', hash);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = hash;
  }
}

/** The number of earlier history entries of this page. */
function depth(): number {
  const state = history.state as { depth?: number } | null;
  return state?.depth ?? 0;
}

let newest = depth();

// New entries have no state yet; revisited ones do.
window.addEventListener('hashchange', () => {
  if (history.state === null) history.replaceState({ depth: newest + 1 }, '');
  newest = depth();
});

/** Goes back one entry, or to the overview instead of leaving the page. */
export function back(): void {
  if (depth() > 0) history.back();
  else go({ view: 'overview' });
}

/** Returns a function that formats link addresses. */
export function useHref(): (to: Target) => string {
  const route = useRoute();
  return useCallback((to: Target) => write(follow(route, to)), [route]);
}

/** Converts a parameter from and to text. */
export interface Codec<T> {
  read(text: string | undefined): T;
  write(value: T): string;
}

/** Text; the default is omitted. */
export function text(initial: string): Codec<string> {
  return { read: (t) => t ?? initial, write: (v) => (v === initial ? '' : v) };
}

/** One of a few words; the first is the default and replaces unknown words. */
export function choice<const T extends readonly [string, ...string[]]>(
  ...words: T
): Codec<T[number]> {
  const initial: T[number] = words[0];
  return {
    read: (t) => words.find((w) => w === t) ?? initial,
    write: (v) => (v === initial ? '' : v),
  };
}

/** A number or undefined. */
export const number: Codec<number | undefined> = {
  read: (t) =>
    t === undefined || t.trim() === '' || !Number.isFinite(Number(t)) ? undefined : Number(t),
  write: (v) => (v === undefined ? '' : String(v)),
};

/** A flag, true if the address has 1. */
export const flag: Codec<boolean> = { read: (t) => t === '1', write: (v) => (v ? '1' : '') };

/** A comma-separated list. */
export const list: Codec<readonly string[]> = {
  read: (t) => (t === undefined ? [] : t.split(',').filter((w) => w !== '')),
  write: (v) => v.join(','),
};

/** An address parameter as state. Setting it replaces the address, so that the history keeps views, not keystrokes. */
export function useParam<T>(name: string, codec: Codec<T>): [T, (value: T) => void] {
  const text = useRoute().query[name];
  const value = useMemo(() => codec.read(text), [codec, text]);
  const set = useCallback((v: T) => go({ query: { [name]: codec.write(v) } }, true), [codec, name]);
  return [value, set];
}

/** The selected time range in seconds since the start; undefined ends are open. */
export function useSpan(): { t0: number | undefined; t1: number | undefined } {
  const { query } = useRoute();
  const t0 = number.read(query.t0);
  const t1 = number.read(query.t1);
  return useMemo(() => ({ t0, t1 }), [t0, t1]);
}
