import type { Overview } from './types.gen.ts';

/** A list, also where a server of another version sent none. */
function list<T>(l: T[] | null | undefined): T[] {
  return l ?? [];
}

/** An overview with all its lists: a view must not fail because one is missing. */
export function wholeOverview(o: Overview): Overview {
  return {
    ...o,
    notices: list(o.notices),
    issues: list(o.issues),
    programs: list(o.programs),
    slowest: list(o.slowest),
    strip: { ...o.strip, series: list(o.strip.series) },
  };
}
