import type { Finding, Timeline, TimelineRow } from '../../api/index.ts';

// Cells, colors and positions of the timeline of all ranks, without side effects.

/** What activities are called, by name in answers. */
export const words: Readonly<Record<string, string>> = {
  none: 'no data',
  own: 'own code',
  mpi: 'communication',
  gpu: 'GPU',
  io: 'files',
  idle: 'idle',
};

/** The name of the color of each activity. */
export const colorToken: Readonly<Record<string, string>> = {
  own: 'group-user',
  mpi: 'group-mpi',
  gpu: 'group-gpu',
  io: 'group-io',
  idle: 'silent-cell',
};

const mostShare = 31;

/** The class of a cell, and its share from 0 to 1. */
export function cell(byte: number): { class: number; share: number } {
  return { class: byte & 7, share: (byte >> 3) / mostShare };
}

/** The bytes of all cells, row by row. */
export function cellsOf(timeline: Timeline): Uint8Array {
  const text = atob(timeline.cells);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

export type RGB = readonly [number, number, number];

/** RGBA pixels of cells, one per cell. Less dominant classes are fainter, down to an opacity; cells without data are transparent. */
export function pixels(
  cells: Uint8Array,
  colors: readonly RGB[],
  faintest: number,
): Uint8ClampedArray<ArrayBuffer> {
  const table = new Uint32Array(256); // RGBA of each byte
  const bytes = new Uint8ClampedArray(table.buffer);
  for (let b = 0; b < 256; b++) {
    const { class: c, share } = cell(b);
    const color = colors[c];
    if (c === 0 || color === undefined) continue;
    bytes.set([...color, Math.round(255 * (faintest + (1 - faintest) * share))], 4 * b);
  }
  const out = new Uint32Array(cells.length);
  for (let i = 0; i < cells.length; i++) out[i] = table[cells[i] ?? 0] ?? 0;
  return new Uint8ClampedArray(out.buffer);
}

/** A part of the timeline: seconds, and rows from the top. Ends are exclusive. */
export interface Frame {
  t0: number;
  t1: number;
  r0: number;
  r1: number;
}

const leastRows = 1;

/** Zooms a part by a factor about a point, within limits. least is the shortest time. */
export function zoom(
  frame: Frame,
  limit: Frame,
  least: number,
  at: { t: number; r: number },
  factor: { t: number; r: number },
): Frame {
  const [t0, t1] = scale([frame.t0, frame.t1], at.t, factor.t, [limit.t0, limit.t1], least);
  const [r0, r1] = scale([frame.r0, frame.r1], at.r, factor.r, [limit.r0, limit.r1], leastRows);
  return { t0, t1, r0, r1 };
}

type Span = readonly [number, number];

function scale(span: Span, at: number, factor: number, limit: Span, least: number): Span {
  const whole = limit[1] - limit[0];
  const size = Math.min(whole, Math.max(Math.min(least, whole), (span[1] - span[0]) * factor));
  const share = (at - span[0]) / Math.max(span[1] - span[0], Number.MIN_VALUE);
  const from = Math.min(limit[1] - size, Math.max(limit[0], at - share * size));
  return [from, from + size];
}

/** Moves a part, within limits. */
export function pan(frame: Frame, limit: Frame, by: { t: number; r: number }): Frame {
  const t = Math.min(limit.t1 - frame.t1, Math.max(limit.t0 - frame.t0, by.t));
  const r = Math.min(limit.r1 - frame.r1, Math.max(limit.r0 - frame.r0, by.r));
  return { t0: frame.t0 + t, t1: frame.t1 + t, r0: frame.r0 + r, r1: frame.r1 + r };
}

/** The name of a row. */
export function rowName(row: TimelineRow, programs: boolean): string {
  const ranks =
    row.first_rank === row.last_rank
      ? `rank ${row.first_rank}`
      : `ranks ${row.first_rank}–${row.last_rank}`;
  return programs ? `program ${row.program}, ${ranks}` : ranks;
}

/** The ranks of rows as an address parameter. */
export function rowRanks(rows: readonly TimelineRow[]): string {
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last) return '';
  return first.first_rank === last.last_rank
    ? `${first.first_rank}`
    : `${first.first_rank}-${last.last_rank}`;
}

/** The row with a rank, or -1. Rows are in order. */
export function rowOf(rows: readonly TimelineRow[], program: number, rank: number): number {
  let [low, high] = [0, rows.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (!row) return -1;
    if (row.program < program || (row.program === program && row.last_rank < rank))
      low = middle + 1;
    else if (row.program > program || row.first_rank > rank) high = middle - 1;
    else return middle;
  }
  return -1;
}

/** A finding on some neighboring rows. */
export interface Mark extends Frame {
  finding: Finding;
}

const mostMarks = 500;

/** Where findings are: a mark for each block of neighboring rows. */
export function marksOf(
  findings: readonly Finding[],
  rows: readonly TimelineRow[],
  end: number,
): Mark[] {
  const marks: Mark[] = [];
  for (const finding of findings) {
    const at = [...new Set(finding.ranks.map((r) => rowOf(rows, finding.program, r)))]
      .filter((r) => r >= 0)
      .sort((a, b) => a - b);
    for (let i = 0; i < at.length && marks.length < mostMarks;) {
      const r0 = at[i] ?? 0;
      let r1 = r0 + 1;
      for (i++; at[i] === r1; i++) r1++;
      marks.push({ finding, t0: finding.from_s, t1: finding.to_s ?? end, r0, r1 });
    }
  }
  return marks;
}

/** The shares of activities of a row in percent, by class; those of classes without time are 0. */
export function shares(row: TimelineRow): number[] {
  const total = row.times_us.reduce((a, b) => a + b, 0);
  return row.times_us.map((t) => (total > 0 ? (100 * t) / total : 0));
}
