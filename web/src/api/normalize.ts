import type { Overview } from './types.gen.ts';

/** Returns an empty list for one that a server of another version omits. */
function list<T>(l: T[] | null | undefined): T[] {
  return l ?? [];
}

/** Fills in missing lists of an overview, so that views need not check. */
export function normalizeOverview(o: Overview): Overview {
  return {
    ...o,
    notices: list(o.notices),
    findings: list(o.findings),
    programs: list(o.programs),
    slowest: list(o.slowest),
    strip: { ...o.strip, series: list(o.strip.series) },
  };
}
