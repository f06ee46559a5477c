import type { EChartsCoreOption } from 'echarts/core';
import type { Finding, Plot, PlotPoint, Range } from '../../api/index.ts';
import { kindColor, seriesColor } from '../../color/index.ts';
import { clock, duration, durationTick } from '../../format/index.ts';
import { axis, timeStep, tip, tooltip, type AxisScale, type ChartColors } from '../../ui/index.ts';

/** The field that colors anomalies. */
export type By = 'kind' | 'host' | 'rank';

const mostColors = 8;

/** Picks the color field: hosts if few, else ranks if few, else none. */
export function bestBy(points: readonly PlotPoint[]): By {
  const anomalies = points.filter((p) => p.anomaly);
  const hosts = new Set(anomalies.map((p) => p.host)).size;
  const ranks = new Set(anomalies.map((p) => p.rank)).size;
  if (hosts > 1 && hosts <= mostColors) return 'host';
  if (ranks > 1 && ranks <= mostColors) return 'rank';
  return 'kind';
}

/** Groups anomalies by color; groups beyond the eighth become "others". */
export function colorGroups(
  points: readonly PlotPoint[],
  by: By,
  kind: string,
): [string, PlotPoint[]][] {
  const name = (p: PlotPoint) => (by === 'host' ? p.host : by === 'rank' ? `rank ${p.rank}` : kind);
  const groups = new Map<string, PlotPoint[]>();
  for (const p of points) {
    if (!p.anomaly) continue;
    const group = groups.get(name(p));
    if (group) group.push(p);
    else groups.set(name(p), [p]);
  }
  const sorted = [...groups].sort((a, b) => a[0].localeCompare(b[0], 'en', { numeric: true }));
  if (sorted.length <= mostColors) return sorted;
  const most = [...sorted].sort((a, b) => b[1].length - a[1].length);
  const kept = most.slice(0, mostColors - 1);
  return [...kept, ['others', most.slice(mostColors - 1).flatMap((g) => g[1])]];
}

/** Clamps a value for a logarithmic axis. */
const shown = (us: number) => Math.max(us, 0.5);

function lines(threshold: Range | undefined): { yAxis: number }[] {
  return [threshold?.low, threshold?.high]
    .filter((v): v is number => v !== undefined && v > 0)
    .map((yAxis) => ({ yAxis }));
}

/** Minimum and maximum duration of the plot in microseconds. */
export function limits(points: readonly PlotPoint[], scale: AxisScale = 'log'): [number, number] {
  let [low, high] = [Infinity, 0.5];
  for (const p of points) {
    low = Math.min(low, shown(p.exclusive_us));
    high = Math.max(high, shown(p.exclusive_us));
  }
  return scale === 'linear' ? [0, high * 1.05] : [Math.min(low, high) / 1.6, high * 1.6];
}

/** Pixels around the plot; several colors need a legend above. */
export function gridOf(groups: number) {
  return { left: 62, right: 16, top: groups > 1 ? 30 : 12, bottom: 26 };
}

/** The ECharts option of durations over time. Points are [s, µs, index in plot.points]. */
export function stripOption(
  plot: Plot,
  finding: Finding,
  by: By,
  span: { from: number; to: number },
  c: ChartColors,
  scale: AxisScale = 'log',
): EChartsCoreOption {
  const index = new Map(plot.points.map((p, i) => [p, i]));
  const datum = (p: PlotPoint) => [p.at_s, shown(p.exclusive_us), index.get(p) ?? 0];
  const groups = colorGroups(plot.points, by, finding.kind);
  const band = plot.typical_us;
  const [low, high] = limits(plot.points, scale);
  const typical = plot.points.filter((p) => !p.anomaly);
  return {
    grid: gridOf(groups.length),
    legend: {
      show: groups.length > 1,
      top: 0,
      left: 56,
      type: 'plain',
      itemWidth: 8,
      itemHeight: 8,
      icon: 'circle',
      textStyle: { color: c.ink2, fontSize: 11 },
      data: groups.map(([name]) => name),
    },
    tooltip: {
      ...tooltip(c),
      trigger: 'item',
      formatter: (params: { data?: unknown }) => pointTip(plot, params.data, span.to - span.from),
    },
    xAxis: {
      ...axis(c),
      type: 'value',
      min: span.from,
      max: span.to,
      interval: timeStep(span.to - span.from, 6),
      axisLabel: {
        color: c.ink3,
        fontSize: 11,
        hideOverlap: true,
        showMaxLabel: false,
        formatter: (s: number) => clock(s, span.to - span.from),
      },
      splitLine: { show: false },
    },
    yAxis: {
      ...axis(c),
      type: scale === 'linear' ? 'value' : 'log',
      min: low,
      max: high,
      axisLabel: {
        color: c.ink3,
        fontSize: 11,
        showMinLabel: false,
        showMaxLabel: false,
        formatter: durationTick,
      },
    },
    series: [
      {
        name: 'typical',
        type: 'scatter',
        symbolSize: 4,
        itemStyle: { color: c.typical, opacity: 0.55 },
        data: typical.map(datum),
        markArea: band
          ? {
              silent: true,
              itemStyle: { color: c.typicalBand },
              data: [
                [
                  { yAxis: Math.max(band.low ?? low, low) },
                  { yAxis: Math.min(band.high ?? high, high) },
                ],
              ],
            }
          : { data: [] },
        markLine: {
          silent: true,
          symbol: 'none',
          label: {
            show: true,
            position: 'insideEndTop',
            color: c.threshold,
            fontSize: 10,
            formatter: 'flag limit',
          },
          lineStyle: { color: c.threshold, type: 'dashed', width: 1 },
          data: lines(plot.threshold_us),
        },
      },
      ...groups.map(([name, points], i) => ({
        name,
        type: 'scatter',
        symbolSize: 7,
        itemStyle: {
          color: by === 'kind' ? kindColor(finding.kind) : seriesColor(i),
          opacity: 0.85,
        },
        emphasis: { itemStyle: { borderColor: c.ink, borderWidth: 1 } },
        data: points.map(datum),
      })),
    ],
  };
}

/** The plot point of a chart datum. */
export function pointOf(plot: Plot, data: unknown): PlotPoint | undefined {
  return Array.isArray(data) && typeof data[2] === 'number' ? plot.points[data[2]] : undefined;
}

function pointTip(plot: Plot, data: unknown, span: number): HTMLElement {
  const p = pointOf(plot, data);
  if (!p) return tip('', []);
  return tip(`${p.anomaly ? 'anomaly' : 'typical'} ${p.event_id}`, [
    ['took', duration(p.exclusive_us)],
    ...(p.anomaly ? ([['lost', duration(p.lost_us)]] as const) : []),
    ['at', clock(p.at_s, span)],
    ['rank', String(p.rank)],
    ['host', p.host],
    ...(p.status ? ([['status', p.status]] as const) : []),
  ]);
}
