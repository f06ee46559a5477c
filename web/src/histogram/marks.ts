// Layout of a histogram. Both axes are logarithmic unless linear ones are wanted: times span five orders of magnitude, and one call must stay visible beside a million. This file has no side effects.

import type { Model, Range } from '../api/index.ts';
import { linearTicks, type AxisScale } from '../ui/index.ts';

/** From left (0) to right (1). */
export interface Bar {
  left: number;
  right: number;
  /** From 0 (no calls) to 1 (most calls). */
  height: number;
  count: number;
  low: number;
  high: number;
}

/** A range of the axis; open ends reach the border. */
export interface Band {
  left: number;
  right: number;
  low: number | undefined;
  high: number | undefined;
}

export interface Line {
  at: number;
  value: number;
}

export interface Limit extends Line {
  side: 'below' | 'above';
}

export interface Marks {
  bars: readonly Bar[];
  /** Usual ranges, one per mode. */
  usual: readonly Band[];
  /** Flag limits: below the lower, above the upper. */
  limits: readonly Limit[];
  /** The marked value, if any. */
  value: Line | undefined;
  ticks: readonly Line[];
  /** Ticks of the call axis. */
  counts: readonly Line[];
  most: number;
}

const smallest = 0.5; // microseconds; shorter times are drawn there

const log = (x: number) => Math.log10(Math.max(x, smallest));
const same = (x: number) => x;

/** Height of a single call, so that it stays visible. */
const floor = 0.35;

function sides(r: Range | undefined): number[] {
  return [r?.low, r?.high].filter((x) => x !== undefined);
}

/** All times that must be visible. */
function domain(
  model: Model,
  value: number | undefined,
  along: (x: number) => number,
): [number, number] {
  const times = [
    ...model.edges_us,
    ...sides(model.typical_us),
    ...sides(model.threshold_us),
    ...(value === undefined ? [] : [value]),
  ].filter((x) => Number.isFinite(x));
  if (times.length === 0) return [0, 1];
  const low = Math.min(...times.map(along));
  const high = Math.max(...times.map(along));
  const room = Math.max((high - low) * 0.04, 0.05);
  return [along === same ? Math.max(0, low - room) : low - room, high + room];
}

/** Lays out a model and an optional judged time. */
export function marksOf(model: Model, value?: number, scale: AxisScale = 'log'): Marks {
  const linear = scale === 'linear';
  const along = linear ? same : log;
  const [from, to] = domain(model, value, along);
  const at = (x: number) => Math.min(1, Math.max(0, (along(x) - from) / (to - from)));
  const most = Math.max(...model.counts, 0);
  const tall = (n: number) =>
    linear ? n / most : (Math.log10(n) + floor) / (Math.log10(most) + floor);
  const times = linear ? linearTicks(from, to, 8) : decades(from, to);
  const calls = linear ? linearTicks(0, most, 4) : powers(most);
  const bars: Bar[] = [];
  model.counts.forEach((count, i) => {
    const low = model.edges_us[i];
    const high = model.edges_us[i + 1];
    if (count <= 0 || low === undefined || high === undefined) return;
    bars.push({ left: at(low), right: at(high), height: tall(count), count, low, high });
  });
  const band = (r: Range): Band => ({
    left: r.low === undefined ? 0 : at(r.low),
    right: r.high === undefined ? 1 : at(r.high),
    low: r.low,
    high: r.high,
  });
  const limit = (side: Limit['side'], x: number | undefined): Limit | undefined =>
    x === undefined ? undefined : { at: at(x), value: x, side };
  const usual =
    model.normal_us.length > 0 ? model.normal_us : model.typical_us ? [model.typical_us] : [];
  return {
    bars,
    usual: usual.map(band),
    limits: [
      limit('below', model.threshold_us?.low),
      limit('above', model.threshold_us?.high),
    ].filter((l) => l !== undefined),
    value: value === undefined ? undefined : { at: at(value), value },
    ticks: times.map((x) => ({ at: at(x), value: x })),
    counts: most > 0 ? calls.map((n) => ({ at: tall(n), value: n })) : [],
    most,
  };
}

/** Round tick times: powers of ten, and 2 and 5 times these if there are few. */
function decades(from: number, to: number): number[] {
  const steps =
    to - from > 2.2 ? [1] : to - from > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const ticks: number[] = [];
  for (let p = Math.floor(from); p <= to; p++) {
    for (const s of steps) {
      const x = s * 10 ** p;
      if (Math.log10(x) >= from && Math.log10(x) <= to) ticks.push(Number(x.toPrecision(3)));
    }
  }
  return ticks;
}

function powers(most: number): number[] {
  const all: number[] = [];
  const step = most > 1e5 ? 100 : 10;
  for (let n = 1; n <= most; n *= step) all.push(n);
  return all;
}

/** Drops lines closer than a number of pixels to the previous one. */
export function apart(lines: readonly Line[], width: number, least: number): Line[] {
  const kept: Line[] = [];
  for (const l of lines) {
    const last = kept.at(-1);
    if (!last || Math.abs(l.at - last.at) * width >= least) kept.push(l);
  }
  return kept;
}

/** The limit that the time exceeds, else the upper one. */
export function tellingLimit(marks: Marks): Limit | undefined {
  const [first, last] = [marks.limits[0], marks.limits.at(-1)];
  const below = first?.side === 'below' && marks.value && marks.value.value < first.value;
  return below === true ? first : last;
}

/** The bar at a position from 0 to 1, or the nearest one close by. */
export function barAt(marks: Marks, at: number, near = 0.008): Bar | undefined {
  let best: Bar | undefined;
  let least = near;
  for (const b of marks.bars) {
    const away = at < b.left ? b.left - at : at > b.right ? at - b.right : 0;
    if (away === 0) return b;
    if (away < least) [best, least] = [b, away];
  }
  return best;
}
