import type { CounterTimeline } from '../../api/index.ts';

// Lines of counters over time, without side effects.

type Values = readonly (number | null)[];

/** A part of time in seconds. */
export interface Span {
  t0: number;
  t1: number;
}

/** The columns that a part of the time overlaps; the end is exclusive. */
export function columnsIn(of: CounterTimeline, span: Span): readonly [number, number] {
  const per = (of.to_s - of.from_s) / Math.max(of.columns, 1);
  const first = Math.floor((span.t0 - of.from_s) / per);
  const end = Math.ceil((span.t1 - of.from_s) / per);
  return [Math.max(0, first), Math.min(of.columns, Math.max(end, first + 1))];
}

/** The least and greatest value in some columns, widened if they are equal; undefined without values. */
export function rangeOf(
  series: readonly Values[],
  [first, end]: readonly [number, number],
): readonly [number, number] | undefined {
  let [least, most] = [Infinity, -Infinity];
  for (const values of series) {
    for (let i = first; i < end; i++) {
      const v = values[i];
      if (v === null || v === undefined) continue;
      least = Math.min(least, v);
      most = Math.max(most, v);
    }
  }
  if (least > most) return undefined;
  return least === most ? [least === 0 ? 0 : least - 1, most + 1] : [least, most];
}

/** Where columns and values are drawn. */
export interface Scale {
  x: (column: number) => number;
  y: (value: number) => number;
}

/** Columns with values in some range of columns. Counters are read now and then, so gaps between readings are bridged. */
function known(values: Values, [first, end]: readonly [number, number]): number[] {
  const all: number[] = [];
  let before = -1;
  let after = -1;
  values.forEach((v, i) => {
    if (v === null) return;
    if (i < first) before = i;
    else if (i < end) all.push(i);
    else if (after < 0) after = i;
  });
  if (before >= 0) all.unshift(before);
  if (after >= 0) all.push(after);
  return all;
}

/** The column with a reading that is nearest to another, among some columns; undefined without any. */
export function nearest(
  values: Values,
  [first, end]: readonly [number, number],
  column: number,
): number | undefined {
  for (let by = 0; by < end - first; by++) {
    for (const c of [column - by, column + by])
      if (c >= first && c < end && values[c] !== null && values[c] !== undefined) return c;
  }
  return undefined;
}

const digits = (n: number) => n.toFixed(2).replace(/\.?0+$/, '');

/** The SVG path of a line through the middle of columns. */
export function linePath(values: Values, columns: readonly [number, number], at: Scale): string {
  return known(values, columns)
    .map((i, k) => `${k === 0 ? 'M' : 'L'}${digits(at.x(i + 0.5))} ${digits(at.y(values[i] ?? 0))}`)
    .join('');
}

/** The SVG path of the area between two lines. */
export function areaPath(
  low: Values,
  high: Values,
  columns: readonly [number, number],
  at: Scale,
): string {
  const indices = known(high, columns);
  if (indices.length === 0) return '';
  const point = (i: number, v: Values) => `${digits(at.x(i + 0.5))} ${digits(at.y(v[i] ?? 0))}`;
  const top = indices.map((i) => point(i, high));
  const bottom = indices.map((i) => point(i, low)).reverse();
  return `M${[...top, ...bottom].join('L')}Z`;
}

/** The unit in the name of a counter: "KB" of "Heap Memory Used (KB)", or "%". */
export function unitOf(name: string): string {
  return /\(([^()\s]{1,8})\)\s*$/.exec(name)?.[1] ?? (/%\s*$/.test(name) ? '%' : '');
}

/** A value with its unit. */
export function valueText(v: number | null | undefined, unit: string): string {
  if (v === null || v === undefined) return 'no reading';
  const size =
    v >= 1e12
      ? v.toExponential(3)
      : v.toLocaleString(
          'en-US',
          v >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 },
        );
  return unit === '' ? size : `${size} ${unit}`;
}
