import type { Finding } from '../../api/index.ts';
import { hasRank } from '../../format/index.ts';

// Filtering and grouping of findings, without side effects.

/** The filters in the address. */
export interface Narrowing {
  kinds: readonly string[];
  host: string;
  rank: string;
  program: string;
  t0: number | undefined;
  t1: number | undefined;
  /** Includes muted and expected findings. */
  muted: boolean;
  /** Includes minor findings and notes. */
  minor: boolean;
  /** Selects withdrawn findings instead of the others. */
  withdrawn: boolean;
}

/** Reports whether a finding is muted or expected. */
export function isMuted(i: Finding): boolean {
  return i.label?.state === 'muted' || i.label?.state === 'expected';
}

/** Reports whether a finding was withdrawn by the review at the end. */
export function isWithdrawn(i: Finding): boolean {
  return i.status === 'withdrawn';
}

/** Reports whether a finding costs too little, or is a note about normal behavior, so that it is listed only on request. */
export function isMinor(i: Finding): boolean {
  return !i.listed && !isWithdrawn(i) && !i.cause;
}

/** Reports whether affected calls of a finding ran in a time range, to the resolution of its counts over time. */
export function within(i: Finding, t0: number | undefined, t1: number | undefined): boolean {
  if (t0 === undefined && t1 === undefined) return true;
  const [from, to] = [t0 ?? 0, t1 ?? Infinity];
  const end = i.to_s === null ? Infinity : Math.max(i.to_s, i.last_s);
  if (i.from_s > to || end < from) return false;
  const part = i.over_to_s / i.over_time.length;
  if (!(part > 0) || !i.over_time.some((n) => n > 0)) return true;
  return i.over_time.some((n, k) => n > 0 && k * part <= to && (k + 1) * part >= from);
}

/** A finding without ranks, such as a lasting change of a function, concerns all of them. */
function hasAnyRank(i: Finding, text: string): boolean {
  if (text === '' || i.rank_count === 0) return true;
  return i.rank_count > i.ranks.length || i.ranks.some((r) => hasRank(text, r));
}

function hasHost(i: Finding, host: string): boolean {
  return (
    host === '' || i.rank_count === 0 || i.host_count > i.hosts.length || i.hosts.includes(host)
  );
}

/** Filters findings, keeping their order. Waits are hidden with the finding that caused them. */
export function narrow(all: readonly Finding[], n: Narrowing): Finding[] {
  const hides = (i: Finding) => (!n.muted && isMuted(i)) || (!n.minor && isMinor(i));
  const quiet = new Set(all.filter(hides).map((i) => i.finding));
  return all.filter(
    (i) =>
      isWithdrawn(i) === n.withdrawn &&
      !quiet.has(i.finding) &&
      !quiet.has(i.cause ?? 0) &&
      (n.kinds.length === 0 || n.kinds.includes(i.kind)) &&
      (n.program === '' || String(i.program) === n.program) &&
      hasHost(i, n.host) &&
      hasAnyRank(i, n.rank) &&
      within(i, n.t0, n.t1),
  );
}

/** A finding with the waits it caused. Waits whose cause is not listed stand alone. */
export interface Folded {
  top: Finding[];
  victims: ReadonlyMap<number, Finding[]>;
}

/** Groups victims under their culprits. */
export function fold(list: readonly Finding[]): Folded {
  const there = new Set(list.map((i) => i.finding));
  const victims = new Map<number, Finding[]>();
  const top: Finding[] = [];
  for (const i of list) {
    if (i.cause === undefined || i.cause === 0 || i.cause === i.finding || !there.has(i.cause)) {
      top.push(i);
      continue;
    }
    victims.set(i.cause, [...(victims.get(i.cause) ?? []), i]);
  }
  return { top, victims };
}

/** Counts findings by kind, most frequent first. */
export function kindCounts(all: readonly Finding[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const i of all) counts.set(i.kind, (counts.get(i.kind) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
