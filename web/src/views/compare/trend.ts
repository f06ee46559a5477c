// Layout and wording of a trend over many runs. This file has no side effects.
import type { Comparable, Trend, TrendRun, TrendSeries } from '../../api/index.ts';
import { bare, count, duration, percent, plural } from '../../format/index.ts';

/** The metric: time of all calls or time lost to anomalies. */
export type Metric = 'time' | 'lost';

/** Counts the runs of a trend: finished runs, and baselines of absent runs. */
export function trendLength(rows: readonly Comparable[]): number {
  return new Set(rows.filter((r) => r.state === 'finished').map((r) => `${r.started} ${r.name}`))
    .size;
}

/** The key of a series. */
export function keyOfSeries(s: TrendSeries): string {
  return `${s.program} ${s.function}`;
}

/** Title of a chart. */
export function seriesName(s: TrendSeries): string {
  return s.program < 0 ? 'All functions' : bare(s.function);
}

/** The start day of a run, such as 12 Jun, or its time of day if all runs are of one day. */
export function dayOf(runs: readonly TrendRun[], at: number): string {
  const started = runs[at]?.started;
  if (started === undefined) return runs[at]?.name ?? '';
  const days = new Set(runs.map((r) => new Date(r.started ?? 0).toDateString()));
  const time = new Date(started);
  return days.size > 1
    ? time.toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
    : time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

/** Lines with the value of a run and related figures. */
export function pointLines(
  t: Trend,
  s: TrendSeries,
  metric: Metric,
  at: number,
): readonly (readonly [string, string])[] {
  const value = s.values_us[at];
  const run = t.runs[at];
  const counts = s.counts[at] ?? 0;
  if (value === null || value === undefined || !run) return [['time', 'unknown']];
  const before = s.values_us[at - 1];
  const change =
    before === null || before === undefined ? [] : [['previous run', duration(before)] as const];
  const whole =
    s.program < 0 && run.exclusive_us > 0
      ? [['share of time', percent(run.lost_percent)] as const]
      : [];
  return metric === 'lost'
    ? [['lost', duration(value)], ...whole, ['anomalies', count(counts)], ...change]
    : [
        ['time of all calls', duration(value)],
        ...(s.program >= 0 && counts > 0
          ? [['mean call time', duration(value / counts)] as const]
          : []),
        ['calls', count(counts)],
        ...change,
      ];
}

/** Describes the last change of a series. */
export function sinceWords(t: Trend, s: TrendSeries): string {
  const newest = s.values_us.at(-1);
  if (newest === null || newest === undefined) return 'unknown in the latest run';
  const now = duration(newest);
  if (!s.since) return `${now}, unchanged`;
  const before = s.values_us[s.since.before] ?? 0;
  return `${duration(before)} → ${now} since ${t.runs[s.since.run]?.name ?? ''}`;
}

/** Describes a chart for screen readers. */
export function chartWords(t: Trend, s: TrendSeries, metric: Metric): string {
  const what = metric === 'lost' ? 'lost to anomalies' : 'time of all calls';
  return `${seriesName(s)}, ${what} in ${plural(t.runs.length, 'run')}. ${s.since?.change ?? 'same'}: ${sinceWords(t, s)}. Arrows move between runs, Enter compares a run with the previous one.`;
}

/** Heights of the points, from 0 to 1. Runs with unknown values have none. */
export function pointsOf(s: TrendSeries): { at: number; y: number }[] {
  const most = Math.max(...s.values_us.map((v) => v ?? 0), 1e-9);
  return s.values_us.flatMap((v, at) => (v === null ? [] : [{ at, y: v / most }]));
}
