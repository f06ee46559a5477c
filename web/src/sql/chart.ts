// Charts of results. No side effects except tooltips.
import type { EChartsCoreOption } from 'echarts/core';
import { axis, tip, tooltip, type ChartColors } from '../ui/index.ts';
import type { Cell, Result } from './ask.ts';

export const kinds = ['table', 'bar', 'line', 'scatter'] as const;

export type Kind = (typeof kinds)[number];

/** Maximum points of a chart; more are indistinguishable. */
export const mostPoints = 5000;

/** Formats a value. */
export function cellText(v: Cell | undefined): string {
  if (v === null || v === undefined) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
}

/** Converts a value to a number; undefined if that is impossible. */
export function cellNumber(v: Cell | undefined): number | undefined {
  if (typeof v === 'number') return v;
  return typeof v === 'string' && /^-?\d+$/.test(v) ? Number(v) : undefined;
}

/** Indexes of the numeric columns. */
export function numeric(result: Result): number[] {
  return result.columns.flatMap((c, i) => (c.type === 'int' || c.type === 'float' ? [i] : []));
}

/** The column with a name, or the best default. */
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

/** The ECharts option of a result. */
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
