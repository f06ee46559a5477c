// An answer as a chart: what can be drawn of it, and how. Pure, but for tooltips.
import type { EChartsCoreOption } from 'echarts/core';
import { axis, tip, tooltip, type ChartColors } from '../ui/index.ts';
import type { Cell, Result } from './ask.ts';

export const kinds = ['table', 'bar', 'line', 'scatter'] as const;

export type Kind = (typeof kinds)[number];

/** Points that a chart has at most; more cannot be told apart. */
export const mostPoints = 5000;

/** A value as text. */
export function cellText(v: Cell | undefined): string {
  if (v === null || v === undefined) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
}

/** A value as a number; undefined if it is none. */
export function cellNumber(v: Cell | undefined): number | undefined {
  if (typeof v === 'number') return v;
  return typeof v === 'string' && /^-?\d+$/.test(v) ? Number(v) : undefined;
}

/** Numbers of the columns that hold numbers. */
export function numeric(result: Result): number[] {
  return result.columns.flatMap((c, i) => (c.type === 'int' || c.type === 'float' ? [i] : []));
}

/** The column of a name, or the one that suits best. */
export function axesOf(result: Result, x: string, y: string): { x: number; y: number } | undefined {
  const numbers = numeric(result);
  const named = (name: string) => result.columns.findIndex((c) => c.name === name);
  const chosenX = named(x);
  const across = chosenX >= 0 ? chosenX : 0;
  const chosenY = named(y);
  const up =
    chosenY >= 0 && numbers.includes(chosenY)
      ? chosenY
      : (numbers.findLast((i) => i !== across) ?? numbers[0]);
  return up === undefined ? undefined : { x: across, y: up };
}

/** The option of a chart. */
export function optionOf(
  result: Result,
  kind: Exclude<Kind, 'table'>,
  axes: { x: number; y: number },
  colors: ChartColors,
): EChartsCoreOption {
  const isNumber = numeric(result).includes(axes.x);
  const byValue = kind !== 'bar' && isNumber;
  const rows = result.rows.slice(0, mostPoints);
  const data = rows.map((r) => [
    byValue ? cellNumber(r[axes.x]) : cellText(r[axes.x]),
    cellNumber(r[axes.y]),
  ]);
  const nameX = result.columns[axes.x]?.name ?? '';
  const nameY = result.columns[axes.y]?.name ?? '';
  const look = axis(colors);
  return {
    grid: { left: 64, right: 20, top: 24, bottom: 44 },
    tooltip: {
      ...tooltip(colors),
      trigger: 'item',
      formatter: (p: { dataIndex: number }) => {
        const row = rows[p.dataIndex];
        return tip(
          cellText(row?.[axes.x]),
          result.columns.map((c, i) => [c.name, cellText(row?.[i])] as const).slice(0, 12),
        );
      },
    },
    xAxis: {
      ...look,
      type: byValue ? 'value' : 'category',
      name: nameX,
      nameLocation: 'middle',
      nameGap: 28,
      scale: true,
      ...(byValue ? {} : { data: data.map((d) => d[0]) }),
    },
    yAxis: { ...look, type: 'value', name: nameY, scale: kind !== 'bar' },
    series: [
      {
        type: kind,
        data: byValue ? data : data.map((d) => d[1]),
        itemStyle: { color: colors.accent },
        lineStyle: { color: colors.accent },
        symbolSize: kind === 'scatter' ? 6 : 4,
        barMaxWidth: 40,
      },
    ],
  };
}
