// What is drawn of a trend over many runs, and how it is told. This file is pure.
import type { Comparable, Trend, TrendRun, TrendSeries } from '../../api/index.ts';
import { bare, count, duration, percent, plural } from '../../format/index.ts';

/** What values are of: the time of all calls, or what was lost to anomalies. */
export type Metric = 'time' | 'lost';

/** How many runs a trend would have: those that are finished, and baselines of runs that are not there themselves. */
export function trendLength(rows: readonly Comparable[]): number {
  return new Set(rows.filter((r) => r.state === 'finished').map((r) => `${r.started} ${r.name}`))
    .size;
}

/** Tells it from others. */
export function keyOfSeries(s: TrendSeries): string {
  return `${s.program} ${s.function}`;
}

/** What a chart is of. */
export function seriesName(s: TrendSeries): string {
  return s.program < 0 ? 'All functions' : bare(s.function);
}

/** When a run was started, as short as its day tells it: 12 Jun, or with the time of day where all are of one day. */
export function dayOf(runs: readonly TrendRun[], at: number): string {
  const started = runs[at]?.started;
  if (started === undefined) return runs[at]?.name ?? '';
  const days = new Set(runs.map((r) => new Date(r.started ?? 0).toDateString()));
  const time = new Date(started);
  return days.size > 1
    ? time.toLocaleDateString(undefined, { day: 'numeric', month: 'short' })
    : time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
}

/** The value of a run and what else is known of it there, in lines. */
export function pointLines(
  t: Trend,
  s: TrendSeries,
  metric: Metric,
  at: number,
): readonly (readonly [string, string])[] {
  const value = s.values_us[at];
  const run = t.runs[at];
  const counts = s.counts[at] ?? 0;
  if (value === null || value === undefined || !run) return [['time', 'not known']];
  const before = s.values_us[at - 1];
  const change =
    before === null || before === undefined ? [] : [['the run before', duration(before)] as const];
  const whole =
    s.program < 0 && run.exclusive_us > 0
      ? [['of all time', percent(run.lost_percent)] as const]
      : [];
  return metric === 'lost'
    ? [['lost', duration(value)], ...whole, ['anomalies', count(counts)], ...change]
    : [
        ['time of all calls', duration(value)],
        ...(s.program >= 0 && counts > 0
          ? [['mean of a call', duration(value / counts)] as const]
          : []),
        ['calls', count(counts)],
        ...change,
      ];
}

/** Since when it is as it is, in a few words. */
export function sinceWords(t: Trend, s: TrendSeries): string {
  const newest = s.values_us.at(-1);
  if (newest === null || newest === undefined) return 'not known of the newest run';
  const now = duration(newest);
  if (!s.since) return `${now}, as always`;
  const before = s.values_us[s.since.before] ?? 0;
  return `${duration(before)} → ${now} since ${t.runs[s.since.run]?.name ?? ''}`;
}

/** What a chart shows, for those who cannot see it. */
export function chartWords(t: Trend, s: TrendSeries, metric: Metric): string {
  const what = metric === 'lost' ? 'lost to anomalies' : 'time of all calls';
  return `${seriesName(s)}, ${what} in ${plural(t.runs.length, 'run')}. ${s.since?.change ?? 'same'}: ${sinceWords(t, s)}. Arrows move from run to run, Enter compares one with the run before it.`;
}

/** How high points are, from 0 to 1. Runs whose value is not known have none. */
export function pointsOf(s: TrendSeries): { at: number; y: number }[] {
  const most = Math.max(...s.values_us.map((v) => v ?? 0), 1e-9);
  return s.values_us.flatMap((v, at) => (v === null ? [] : [{ at, y: v / most }]));
}
