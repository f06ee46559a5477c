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
] as const satisfies readonly (keyof Selection)[];

/** Writes a selection as one parameter of the address. */
export function writeSelection(s: Selection): string {
  const all = new URLSearchParams();
  for (const name of names) {
    const value = s[name];
    if (value !== undefined && value !== '') all.set(name, value);
  }
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
  return s;
}

/** The parameters of the question. */
export function selectionParams(s: Selection): Params {
  return { ...s };
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

/** Ranks that are none of these, as 0-7,12; empty: none is left. */
export function otherRanks(ranks: readonly number[], total: number): string {
  const without = new Set(ranks);
  const parts: string[] = [];
  for (let r = 0; r < total; r++) {
    if (without.has(r)) continue;
    const first = r;
    while (r + 1 < total && !without.has(r + 1)) r++;
    parts.push(first === r ? `${first}` : `${first}-${r}`);
  }
  return parts.join(',');
}
