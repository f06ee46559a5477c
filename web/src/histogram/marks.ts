// Where the bars and lines of a histogram are. Both axes are logarithmic: times
// span five orders of magnitude, and one call must be seen beside a million. This
// file is pure.

import type { Model, Range } from '../api/index.ts';

/** From left (0) to right (1). */
export interface Bar {
  left: number;
  right: number;
  /** From nothing (0) to the most calls (1). */
  height: number;
  count: number;
  low: number;
  high: number;
}

/** A part of the axis; sides that the model leaves open end at the border. */
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
  /** What is usual: one for each mode. */
  usual: readonly Band[];
  /** Where flagging begins: below the one, above the other. */
  limits: readonly Limit[];
  /** The value that is shown, if there is one. */
  value: Line | undefined;
  ticks: readonly Line[];
  /** Numbers of calls at the side. */
  counts: readonly Line[];
  most: number;
}

const smallest = 0.5; // microseconds; less is drawn there

const log = (x: number) => Math.log10(Math.max(x, smallest));

/** Where one call is on the axis of calls, so that it can be seen. */
const floor = 0.35;

function sides(r: Range | undefined): number[] {
  return [r?.low, r?.high].filter((x) => x !== undefined);
}

/** All times that must be seen. */
function domain(model: Model, value: number | undefined): [number, number] {
  const times = [
    ...model.edges_us,
    ...sides(model.typical_us),
    ...sides(model.threshold_us),
    ...(value === undefined ? [] : [value]),
  ].filter((x) => Number.isFinite(x));
  if (times.length === 0) return [0, 1];
  const low = Math.min(...times.map(log));
  const high = Math.max(...times.map(log));
  const room = Math.max((high - low) * 0.04, 0.05);
  return [low - room, high + room];
}

/** Lays a model out, with a time that was judged by it. */
export function marksOf(model: Model, value?: number): Marks {
  const [from, to] = domain(model, value);
  const at = (x: number) => Math.min(1, Math.max(0, (log(x) - from) / (to - from)));
  const most = Math.max(...model.counts, 0);
  const tall = (n: number) => (Math.log10(n) + floor) / (Math.log10(most) + floor);
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
    ticks: decades(from, to).map((x) => ({ at: at(x), value: x })),
    counts: most > 0 ? powers(most).map((n) => ({ at: tall(n), value: n })) : [],
    most,
  };
}

/** Round times of a part of the axis: powers of ten, and 2 and 5 times these where there are few. */
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

/** Lines that are at least so many pixels apart, of a width; the first is kept. */
export function apart(lines: readonly Line[], width: number, least: number): Line[] {
  const kept: Line[] = [];
  for (const l of lines) {
    const last = kept.at(-1);
    if (!last || Math.abs(l.at - last.at) * width >= least) kept.push(l);
  }
  return kept;
}

/** The limit that says most of a time: the one that it is beyond, else the upper one. */
export function tellingLimit(marks: Marks): Limit | undefined {
  const [first, last] = [marks.limits[0], marks.limits.at(-1)];
  const below = first?.side === 'below' && marks.value && marks.value.value < first.value;
  return below === true ? first : last;
}

/** The bar at a place from 0 to 1, or the nearest one within a little. */
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
