import type { Overview } from '../api/index.ts';
import type { Params } from '../api/client.ts';
import type { Route } from '../route/index.ts';

// What is to be explained, as the address has it. Pure.

/** Anomalies by issue, place, time and duration; what is not given does not narrow. */
export interface Selection {
  /** Key of an issue. */
  issue?: string;
  func?: string;
  kind?: string;
  host?: string;
  /** As 0,4-7. */
  rank?: string;
  program?: string;
  /** Seconds since the begin. */
  from?: string;
  to?: string;
  /** Exclusive time. */
  min_us?: string;
  max_us?: string;
  /** Corners of a polygon in the plot, as SECONDS:MICROSECONDS,… */
  lasso?: string;
  /** Conditions on fields, as FIELD=VALUE: what is left, and what is left out. */
  only?: readonly string[];
  without?: readonly string[];
  /** The field by which it is broken down. */
  by?: string;
}

const names = [
  'issue',
  'func',
  'kind',
  'host',
  'rank',
  'program',
  'from',
  'to',
  'min_us',
  'max_us',
  'lasso',
  'by',
] as const satisfies readonly (keyof Selection)[];

const lists = ['only', 'without'] as const satisfies readonly (keyof Selection)[];

/** Writes a selection as one parameter of the address. */
export function writeSelection(s: Selection): string {
  const all = new URLSearchParams();
  for (const name of names) {
    const value = s[name];
    if (value !== undefined && value !== '') all.set(name, value);
  }
  for (const name of lists) for (const term of s[name] ?? []) all.append(name, term);
  // An empty one is everything: the parameter must not vanish with it.
  return all.toString() || 'all';
}

/** Reads it; undefined: nothing is to be explained. What is not known is left out. */
export function readSelection(text: string | undefined): Selection | undefined {
  if (text === undefined || text === '') return undefined;
  const all = new URLSearchParams(text);
  const s: Selection = {};
  for (const name of names) {
    const value = all.get(name);
    if (value !== null && value !== '') s[name] = value;
  }
  for (const name of lists) {
    const terms = all.getAll(name).filter((t) => t !== '');
    if (terms.length > 0) s[name] = terms;
  }
  return s;
}

/** The parameters of the question, without what it is broken down by. */
export function selectionParams(s: Selection): Params {
  return { ...s, by: undefined };
}

/** The selection with only what has values of a field; what was left of it before does not count. */
export function onlyThese(s: Selection, field: string, terms: readonly string[]): Selection {
  const others = (s.only ?? []).filter((t) => !t.startsWith(`${field}=`));
  return { ...s, only: [...others, ...terms] };
}

/** The selection without what has some values. */
export function withoutThese(s: Selection, terms: readonly string[]): Selection {
  return { ...s, without: [...new Set([...(s.without ?? []), ...terms])] };
}

/** The selection without one of its conditions. */
export function released(s: Selection, list: 'only' | 'without', term: string): Selection {
  return { ...s, [list]: (s[list] ?? []).filter((t) => t !== term) };
}

/**
 * What is to be explained where nothing was drawn: the issue that is open, within what
 * the address narrows; else all that it narrows to; else the worst issue.
 */
export function selectionOf(route: Route, overview: Overview | undefined): Selection {
  const { query } = route;
  const narrowed: Selection = {
    host: query.host,
    rank: query.rank,
    program: query.program,
    from: query.t0,
    to: query.t1,
  };
  const some = [narrowed.host, narrowed.rank, narrowed.from, narrowed.to].some(
    (v) => v !== undefined,
  );
  if (route.view === 'issues' && query.sel) return { ...narrowed, issue: query.sel };
  if (some) return narrowed;
  const worst = overview?.issues[0]?.key;
  return worst === undefined ? narrowed : { issue: worst };
}
