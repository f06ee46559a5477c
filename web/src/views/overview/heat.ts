import type { Heatmap, HeatRow } from '../../api/index.ts';
import type { AxisScale } from '../../ui/index.ts';

// Heatmap geometry and colors, without side effects.

/** Position of a value on the scale, from 0 to 1. */
export function share(value: number, max: number, scale: AxisScale = 'log'): number {
  if (!(value > 0) || !(max > 0)) return 0;
  if (scale === 'linear') return Math.min(1, Math.max(0.02, value / max));
  const decades = 4; // values below 1e-4 of the maximum get the faintest color
  return Math.min(1, Math.max(0.02, 1 + Math.log10(value / max) / decades));
}

/** An RGB color. */
export type RGB = readonly [number, number, number];

/** Parses #rrggbb. */
export function rgb(hex: string): RGB {
  const n = parseInt(hex.replace('#', '').slice(0, 6), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

/** Reports whether a cell has no data. */
export function noData(map: Heatmap, row: number, column: number): boolean {
  const r = map.rows[row];
  if (r?.silent === true) return true;
  if (r?.until_s === undefined) return false;
  return map.from_s + (column / map.columns) * (map.to_s - map.from_s) >= r.until_s;
}

/** The RGBA pixels of a heatmap, one per cell. Cells without data are striped. */
export function pixels(
  map: Heatmap,
  ramp: Uint8ClampedArray,
  empty: RGB,
  silent: RGB,
  scale: AxisScale = 'log',
): Uint8ClampedArray<ArrayBuffer> {
  const { columns, rows } = map;
  const out = new Uint8ClampedArray(columns * rows.length * 4);
  for (let r = 0; r < rows.length; r++) {
    for (let c = 0; c < columns; c++) {
      const [red, green, blue] = c % 2 === 0 && noData(map, r, c) ? silent : empty;
      const at = (r * columns + c) * 4;
      out[at] = red;
      out[at + 1] = green;
      out[at + 2] = blue;
      out[at + 3] = 255;
    }
  }
  for (const { r, c, v } of map.cells) {
    if (r < 0 || r >= rows.length || c < 0 || c >= columns) continue;
    const i = Math.round(share(v, map.max, scale) * 255) * 3;
    const at = (r * columns + c) * 4;
    out[at] = ramp[i] ?? 0;
    out[at + 1] = ramp[i + 1] ?? 0;
    out[at + 2] = ramp[i + 2] ?? 0;
  }
  return out;
}

/** Adjacent rows of one host. */
export interface HostGroup {
  host: string;
  from: number; // row
  to: number; // the row after
}

/** Groups adjacent rows by host. */
export function hostGroups(rows: readonly HeatRow[]): HostGroup[] {
  const groups: HostGroup[] = [];
  rows.forEach((row, i) => {
    const last = groups.at(-1);
    const before = rows[i - 1];
    if (last?.host === row.host && before?.program === row.program) last.to = i + 1;
    else groups.push({ host: row.host, from: i, to: i + 1 });
  });
  return groups;
}

/** Returns the groups whose labels do not overlap, given pixels per row. */
export function labeled(groups: readonly HostGroup[], rowHeight: number, room = 13): HostGroup[] {
  const out: HostGroup[] = [];
  let free = -Infinity;
  for (const g of groups) {
    const y = g.from * rowHeight;
    if (y < free) continue;
    out.push(g);
    free = y + room;
  }
  return out;
}

/** Pixels per row for an approximate total height: an integer if rows are many, at least one. */
export function rowHeight(rows: number, height: number): number {
  if (rows === 0) return 0;
  const h = Math.min(26, height / rows);
  return h >= 4 ? Math.floor(h) : Math.max(1, h);
}

/** The name of a row: rank 7, ranks 8-11. */
export function rowName(row: HeatRow, programs: boolean): string {
  const ranks =
    row.first_rank === row.last_rank
      ? `rank ${row.first_rank}`
      : `ranks ${row.first_rank}-${row.last_rank}`;
  return programs ? `program ${row.program} ${ranks}` : ranks;
}

/** The ranks of a row as an address parameter. */
export function rowRanks(row: HeatRow): string {
  return row.first_rank === row.last_rank
    ? `${row.first_rank}`
    : `${row.first_rank}-${row.last_rank}`;
}
