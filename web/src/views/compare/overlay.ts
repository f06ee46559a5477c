// Layout of two histograms on common bins with logarithmic or linear axes. This file has no side effects.
import type { HistogramPair } from '../../api/index.ts';
import { duration, percent } from '../../format/index.ts';
import { linearTicks, type AxisScale } from '../../ui/index.ts';

export interface Line {
  at: number;
  value: number;
}

export interface Steps {
  /** Heights of A and B by bin: 0 is none, 1 the largest share. */
  heights: readonly [readonly number[], readonly number[]];
  /** Edges of bins, from 0 to 1. */
  sides: readonly number[];
  ticks: readonly Line[];
  shares: readonly Line[];
  /** Position of the largest difference of the cumulative shares. */
  at: number | undefined;
}

const floor = 0.3; // height of the smallest share, in powers of ten

/** Lays out two histograms. */
export function stepsOf(h: HistogramPair, scale: AxisScale = 'log'): Steps {
  const linear = scale === 'linear';
  const log = (x: number) => Math.log10(Math.max(x, 1e-9));
  const along = linear ? (x: number) => x : log;
  const from = along(h.edges_us[0] ?? 1);
  const to = along(h.edges_us.at(-1) ?? 10);
  const at = (x: number) => Math.min(1, Math.max(0, (along(x) - from) / (to - from || 1)));
  const all = [...h.shares[0], ...h.shares[1]].filter((s) => s > 1e-9);
  const most = Math.max(...all, 1e-9);
  const least = Math.max(Math.min(...all, most), most / 1e5);
  const tall = (s: number) =>
    linear
      ? s / most
      : s < least * 0.999
        ? 0
        : (log(s / least) + floor) / (log(most / least) + floor);
  const shares: Line[] = linear
    ? linearTicks(0, most, 4).map((s) => ({ at: tall(s), value: s }))
    : [];
  for (let p = Math.floor(log(most)); !linear && p >= log(least); p--) {
    shares.push({ at: tall(10 ** p), value: 10 ** p });
  }
  return {
    heights: [h.shares[0].map(tall), h.shares[1].map(tall)],
    sides: h.edges_us.map(at),
    ticks: (linear ? linearTicks(from, to, 6) : round(from, to)).map((x) => ({
      at: at(x),
      value: x,
    })),
    shares,
    at: h.distance > 0 ? at(h.at_us) : undefined,
  };
}

/** Round tick times. */
function round(from: number, to: number): number[] {
  const steps = to - from > 2.2 ? [1] : to - from > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const all: number[] = [];
  for (let p = Math.floor(from); p <= to; p++) {
    for (const s of steps) {
      const x = s * 10 ** p;
      if (Math.log10(x) >= from && Math.log10(x) <= to) all.push(Number(x.toPrecision(3)));
    }
  }
  return all;
}

/** The outline of a histogram as an SVG path. x and y map axis fractions to pixels. */
export function outline(
  sides: readonly number[],
  heights: readonly number[],
  x: (at: number) => number,
  y: (height: number) => number,
): string {
  const parts = [`M${x(sides[0] ?? 0).toFixed(1)} ${y(0).toFixed(1)}`];
  heights.forEach((h, i) => {
    parts.push(`V${y(h).toFixed(1)}`, `H${x(sides[i + 1] ?? 1).toFixed(1)}`);
  });
  return `${parts.join('')}V${y(0).toFixed(1)}Z`;
}

/** Describes the two distances. */
export function distanceWords(h: HistogramPair): string {
  if (h.distance === 0) return 'The distributions are equal.';
  const [a, b] = h.below.map((s) => percent(100 * s));
  return `${a} of the calls in A and ${b} of those in B took up to ${duration(h.at_us)}: the largest difference.`;
}
