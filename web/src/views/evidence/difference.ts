// The difference between an execution and a normal one. This file has no side effects.

import type { Evidence, Lane, LaneCall } from '../../api/index.ts';
import { bare, count, duration, factor, plural } from '../../format/index.ts';

/** A part of an execution: its own time or the time in a callee. */
export interface Part {
  /** Name of the callee; empty for own time. */
  name: string;
  here: number;
  normal: number;
  callsHere: number;
  callsNormal: number;
}

export interface Difference {
  parts: readonly Part[];
  sentence: string;
}

/** The part for calls missing from the record, which holds only calls nearby. */
export const notShown = '(calls not recorded)';

interface Sum {
  time: number;
  calls: number;
}

/** The direct callees, by function. */
function callees(lane: Lane | undefined): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  const self = lane?.calls.find((c) => c.self === true);
  if (!lane || !self) return sums;
  const inside = (c: LaneCall) =>
    c.depth === self.depth + 1 && c.enter_us >= self.enter_us && c.exit_us <= self.exit_us;
  for (const c of lane.calls) {
    if (!inside(c)) continue;
    const sum = sums.get(c.function) ?? { time: 0, calls: 0 };
    sum.time += c.exit_us - c.enter_us;
    sum.calls++;
    sums.set(c.function, sum);
  }
  return sums;
}

function rest(inclusive: number, exclusive: number, sums: Map<string, Sum>): number {
  let time = inclusive - exclusive;
  for (const s of sums.values()) time -= s.time;
  return Math.max(0, time);
}

/** Compares an execution with its twin; undefined without a twin. */
export function difference(e: Evidence): Difference | undefined {
  const { twin } = e;
  if (!twin) return undefined;
  const here = callees(e.lanes[0]);
  const there = callees(twin.lanes[0]);
  const parts: Part[] = [
    {
      name: '',
      here: e.exclusive_us,
      normal: twin.exclusive_us,
      callsHere: 1,
      callsNormal: 1,
    },
  ];
  for (const name of new Set([...here.keys(), ...there.keys()])) {
    parts.push({
      name,
      here: here.get(name)?.time ?? 0,
      normal: there.get(name)?.time ?? 0,
      callsHere: here.get(name)?.calls ?? 0,
      callsNormal: there.get(name)?.calls ?? 0,
    });
  }
  const unseen = {
    name: notShown,
    here: rest(e.inclusive_us, e.exclusive_us, here),
    normal: rest(twin.inclusive_us, twin.exclusive_us, there),
    callsHere: 0,
    callsNormal: 0,
  };
  if (unseen.here > 0 || unseen.normal > 0) parts.push(unseen);
  parts.sort((a, b) => Math.abs(b.here - b.normal) - Math.abs(a.here - a.normal));
  return { parts, sentence: words(e, parts) };
}

/** Describes the difference and its largest part. */
function words(e: Evidence, parts: readonly Part[]): string {
  const { twin } = e;
  if (!twin) return '';
  const [a, b] = [e.inclusive_us, twin.inclusive_us];
  const by = a - b;
  if (by === 0) return `Both took ${duration(a)}.`;
  const times = b > 0 && a > 0 ? (a > b ? a / b : b / a) : 0;
  const much = times >= 1000 ? ` (${count(times)}×)` : times >= 1.05 ? ` (${factor(times)})` : '';
  const head = `It took ${duration(Math.abs(by))} ${by > 0 ? 'longer' : 'less'} than a normal one${much}: ${duration(a)} instead of ${duration(b)}`;
  const most = parts.find((p) => p.here > p.normal === by > 0 && p.here !== p.normal);
  if (!most) return `${head}.`;
  const share = Math.abs(most.here - most.normal) / Math.abs(by);
  const where =
    most.name === ''
      ? `own time of ${bare(e.function)}`
      : most.name === notShown
        ? 'in calls not recorded'
        : `in ${bare(most.name)}`;
  const calls =
    most.callsHere !== most.callsNormal && most.name !== '' && most.name !== notShown
      ? `, called ${plural(most.callsHere, 'time')} instead of ${most.callsNormal}`
      : '';
  const part =
    share >= 0.95 ? 'All of it is' : share > 0.5 ? 'Most of it is' : 'The largest part of it is';
  return `${head}. ${part} ${where}${calls}.`;
}
