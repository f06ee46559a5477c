import { useCallback, useMemo, useSyncExternalStore } from 'react';
import { lasting, parse, write, type Route, type View } from './hash.ts';

// The address is the only state of what is shown: these hooks read and write it.

function subscribe(changed: () => void): () => void {
  window.addEventListener('hashchange', changed);
  return () => window.removeEventListener('hashchange', changed);
}

/** What the address says now. */
export function currentRoute(): Route {
  return parse(location.hash);
}

/** What is shown; the component is drawn again when that changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => parse(hash), [hash]);
}

/** Changes of parameters; undefined or '' removes one. */
export type Changes = Readonly<Record<string, string | number | undefined>>;

/** Where a link leads. */
export interface Target {
  view?: View;
  event?: string;
  query?: Changes;
}

/**
 * The route of a target as seen from another: another view keeps only the lasting
 * parameters, the same view keeps all. Changes are applied then.
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

/** Goes somewhere. replace leaves no step in the history: for what changes while a mouse moves. */
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

/** How many steps of the page are behind this one in the history. */
function depth(): number {
  const state = history.state as { depth?: number } | null;
  return state?.depth ?? 0;
}

let newest = depth();

// A step that a link made has no state yet; one that is returned to has.
window.addEventListener('hashchange', () => {
  if (history.state === null) history.replaceState({ depth: newest + 1 }, '');
  newest = depth();
});

/** One step back, but never out of the page: then to the overview. */
export function back(): void {
  if (depth() > 0) history.back();
  else go({ view: 'overview' });
}

/** The address of a target, for links. */
export function useHref(): (to: Target) => string {
  const route = useRoute();
  return useCallback((to: Target) => write(follow(route, to)), [route]);
}

/** How a parameter is read from and written to the address. */
export interface Codec<T> {
  read(text: string | undefined): T;
  write(value: T): string;
}

/** A text; the default is not written. */
export function text(initial: string): Codec<string> {
  return { read: (t) => t ?? initial, write: (v) => (v === initial ? '' : v) };
}

/** One of a few words; the first is the default, which also stands for words that are none of them. */
export function choice<const T extends readonly [string, ...string[]]>(
  ...words: T
): Codec<T[number]> {
  const initial: T[number] = words[0];
  return {
    read: (t) => words.find((w) => w === t) ?? initial,
    write: (v) => (v === initial ? '' : v),
  };
}

/** A number, or nothing. */
export const number: Codec<number | undefined> = {
  read: (t) =>
    t === undefined || t.trim() === '' || !Number.isFinite(Number(t)) ? undefined : Number(t),
  write: (v) => (v === undefined ? '' : String(v)),
};

/** Yes or no; no unless the address says 1. */
export const flag: Codec<boolean> = { read: (t) => t === '1', write: (v) => (v ? '1' : '') };

/** Words with commas between. */
export const list: Codec<readonly string[]> = {
  read: (t) => (t === undefined ? [] : t.split(',').filter((w) => w !== '')),
  write: (v) => v.join(','),
};

/** A parameter of the address as state. Setting it replaces the address: the history keeps views, not keystrokes. */
export function useParam<T>(name: string, codec: Codec<T>): [T, (value: T) => void] {
  const text = useRoute().query[name];
  const value = useMemo(() => codec.read(text), [codec, text]);
  const set = useCallback((v: T) => go({ query: { [name]: codec.write(v) } }, true), [codec, name]);
  return [value, set];
}

/** The times that the brush chose, in seconds since the begin; undefined: from the begin, to the end. */
export function useSpan(): { t0: number | undefined; t1: number | undefined } {
  const { query } = useRoute();
  const t0 = number.read(query.t0);
  const t1 = number.read(query.t1);
  return useMemo(() => ({ t0, t1 }), [t0, t1]);
}
