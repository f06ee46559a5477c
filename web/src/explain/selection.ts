import type { Overview } from '../api/index.ts';
import type { Params } from '../api/client.ts';
import type { Route } from '../route/index.ts';

// The selection to explain, as stored in the address. This file has no side effects.

/** Selects anomalies by finding, place, time and duration; omitted fields match all. */
export interface Selection {
  /** Key of a finding. */
  finding?: string;
  func?: string;
  kind?: string;
  host?: string;
  /** Ranks such as 0,4-7. */
  rank?: string;
  program?: string;
  /** Seconds since the start. */
  from?: string;
  to?: string;
  /** Own time in microseconds. */
  min_us?: string;
  max_us?: string;
  /** Corners of a polygon in the plot, as SECONDS:MICROSECONDS,… */
  lasso?: string;
  /** Conditions FIELD=VALUE on fields: included and excluded. */
  only?: readonly string[];
  without?: readonly string[];
  /** The field to group by. */
  by?: string;
}

const names = [
  'finding',
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

/** Encodes a selection as one address parameter. */
export function writeSelection(s: Selection): string {
  const all = new URLSearchParams();
  for (const name of names) {
    const value = s[name];
    if (value !== undefined && value !== '') all.set(name, value);
  }
  for (const name of lists) for (const term of s[name] ?? []) all.append(name, term);
  // An empty selection means all; the parameter must remain.
  return all.toString() || 'all';
}

/** Decodes a selection, ignoring unknown fields; undefined without one. */
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

/** The query parameters of a selection, without the grouping. */
export function selectionParams(s: Selection): Params {
  return { ...s, by: undefined };
}

/** Restricts a selection to values of a field, replacing earlier values of that field. */
export function onlyThese(s: Selection, field: string, terms: readonly string[]): Selection {
  const others = (s.only ?? []).filter((t) => !t.startsWith(`${field}=`));
  return { ...s, only: [...others, ...terms] };
}

/** Excludes values from a selection. */
export function withoutThese(s: Selection, terms: readonly string[]): Selection {
  return { ...s, without: [...new Set([...(s.without ?? []), ...terms])] };
}

/** Removes a condition from a selection. */
export function released(s: Selection, list: 'only' | 'without', term: string): Selection {
  return { ...s, [list]: (s[list] ?? []).filter((t) => t !== term) };
}

/**
 * The default selection: the open finding within the active filters, else all that the filters match, else the worst finding.
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
  if (route.view === 'findings' && query.sel) return { ...narrowed, finding: query.sel };
  if (some) return narrowed;
  const worst = overview?.findings[0]?.key;
  return worst === undefined ? narrowed : { finding: worst };
}
