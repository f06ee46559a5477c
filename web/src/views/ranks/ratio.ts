import type { RankRow, RankTable } from '../../api/index.ts';
import { clock, percent, unknown } from '../../format/index.ts';

// The scale of ratios and words about rows, without side effects.

/** Ratios from 1/mostRatio to mostRatio have different colors. */
export const mostRatio = 2;

/** Position of a ratio on the scale: 0.5 is equal to peers, above is slower. Small differences are stretched. */
export function position(ratio: number): number {
  const x = Math.log(ratio) / Math.log(mostRatio);
  const bent = Math.sign(x) * Math.min(1, Math.abs(x)) ** 0.8;
  return 0.5 + bent / 2;
}

/** The opaque color of windows with data and nothing to compare them with. */
export type RGB = readonly [number, number, number];

/** RGBA pixels of rows, one per window. Pixels without data are transparent. */
export function pixels(
  rows: readonly RankRow[],
  columns: number,
  ramp: Uint8ClampedArray,
  incomparable: RGB,
): Uint8ClampedArray<ArrayBuffer> {
  const out = new Uint8ClampedArray(columns * rows.length * 4);
  rows.forEach((row, r) => {
    for (let c = 0; c < columns; c++) {
      const ratio = row.ratios[c];
      if (ratio === null || ratio === undefined) continue;
      const i = Math.round(position(ratio) * 255) * 3;
      const color = ratio === 0 ? incomparable : [ramp[i] ?? 0, ramp[i + 1] ?? 0, ramp[i + 2] ?? 0];
      out.set([...color, 255], (r * columns + c) * 4);
    }
  });
  return out;
}

/** A ratio in words. */
export function ratioText(ratio: number | null | undefined): string {
  if (ratio === null || ratio === undefined) return 'no data';
  if (ratio === 0) return 'nothing to compare with';
  return `${ratio.toFixed(2)}×`;
}

/** The key of a row. */
export function rowKey(row: RankRow): string {
  return `${row.program}:${row.first_rank}-${row.last_rank}:${row.thread ?? ''}:${row.role}`;
}

/** The ranks of a row as an address parameter. */
export function rowRanks(row: RankRow): string {
  return row.first_rank === row.last_rank
    ? `${row.first_rank}`
    : `${row.first_rank}-${row.last_rank}`;
}

/** When a row is slow, in words. */
export function patternText(row: Pick<RankRow, 'pattern' | 'from_s' | 'to_s'>, span: number) {
  const from = clock(row.from_s ?? undefined, span);
  switch (row.pattern) {
    case 'always':
      return 'always';
    case 'since':
      return `since ${from}`;
    case 'phase':
      return row.to_s === null ? `since ${from}` : `${from} to ${clock(row.to_s, span)}`;
    case 'role':
      return 'by role';
    case 'roaming':
      return 'roaming';
    default:
      return '';
  }
}

/** A share of 1 in percent. */
export function share(n: number | null | undefined): string {
  return n === null || n === undefined ? unknown : percent(Number((100 * n).toPrecision(6)));
}

/** The time that windows cover. */
export function span(table: RankTable): { from: number; to: number } {
  const first = table.windows[0];
  const last = table.windows.at(-1);
  return { from: first?.from_s ?? 0, to: last?.to_s ?? 0 };
}
