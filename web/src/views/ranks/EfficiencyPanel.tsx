import { useCallback, useMemo } from 'react';
import type { Efficiency } from '../../api/index.ts';
import { seriesColor } from '../../color/index.ts';
import { clock } from '../../format/index.ts';
import { axis, Chart, ExportFigure, tip, tooltip, type ChartColors } from '../../ui/index.ts';
import { share } from './ratio.ts';

const metrics = [
  ['parallel', 'parallel efficiency'],
  ['load_balance', 'load balance'],
  ['communication', 'communication efficiency'],
] as const;

/** The points of a metric; a gap in time breaks the line. */
export function points(
  list: readonly Efficiency[],
  metric: (typeof metrics)[number][0],
): [number, number | null][] {
  const out: [number, number | null][] = [];
  list.forEach((e, i) => {
    const before = list[i - 1];
    if (before && e.from_s > before.to_s + 1e-6) out.push([(before.to_s + e.from_s) / 2, null]);
    out.push([(e.from_s + e.to_s) / 2, 100 * e[metric]]);
  });
  return out;
}

/** The efficiency of a program over time and in the entire run. */
export function EfficiencyPanel(props: {
  list: readonly Efficiency[];
  program: number | undefined; // of several
}) {
  const { list, program } = props;
  const title = `efficiency-${program ?? 0}`;
  const run = list.find((e) => e.entire);
  const overTime = useMemo(() => list.filter((e) => !e.entire), [list]);
  const length = run ? run.to_s - run.from_s : 0;
  return (
    <section className="panel" aria-labelledby={title} data-figure>
      <header className="panel-head">
        <h2 id={title}>
          Efficiency over time{program === undefined ? '' : ` of program ${program}`}
        </h2>
        <span className="push" />
        {run && (
          <p
            className="efficiency-run"
            title="Parallel efficiency is the share of the time of all ranks that is useful: mean useful time / elapsed time. Load balance is mean / greatest useful time, communication efficiency greatest useful time / elapsed time."
          >
            <strong>{share(run.parallel)}</strong> parallel = {share(run.load_balance)} load balance
            × {share(run.communication)} communication
            {run.device_parallel !== undefined && <> · GPUs {share(run.device_parallel)}</>}
          </p>
        )}
        {overTime.length > 1 && (
          <ExportFigure
            title={`Efficiency over time${program === undefined ? '' : ` of program ${program}`}`}
          />
        )}
      </header>
      {overTime.length > 1 && <Lines list={overTime} length={length} />}
      {overTime.length <= 1 && (
        <p className="heat-words muted">The run is too short to show its efficiency over time.</p>
      )}
    </section>
  );
}

function Lines({ list, length }: { list: readonly Efficiency[]; length: number }) {
  const option = useCallback(
    (colors: ChartColors) => ({
      grid: { left: 44, right: 16, top: 40, bottom: 24 },
      legend: {
        top: 0,
        left: 0,
        textStyle: { color: colors.ink2, fontSize: 11 },
        itemHeight: 8,
        data: metrics.map(([, name]) => name),
      },
      tooltip: {
        ...tooltip(colors),
        trigger: 'axis',
        formatter: (all: { value: [number, number | null]; seriesName: string }[]) =>
          tip(
            clock(all[0]?.value[0], length),
            all.map((s) => [s.seriesName, share(s.value[1] === null ? null : s.value[1] / 100)]),
          ),
      },
      xAxis: {
        ...axis(colors),
        type: 'value',
        min: list[0]?.from_s,
        max: list.at(-1)?.to_s,
        splitLine: { show: false },
        axisLabel: {
          color: colors.ink3,
          fontSize: 11,
          hideOverlap: true,
          formatter: (s: number) => clock(s, length),
        },
      },
      yAxis: {
        ...axis(colors),
        type: 'value',
        min: 0,
        max: 100,
        interval: 25,
        axisLabel: { color: colors.ink3, fontSize: 11, formatter: '{value} %' },
      },
      series: metrics.map(([metric, name], i) => ({
        name,
        type: 'line',
        data: points(list, metric),
        symbol: ['circle', 'rect', 'triangle'][i],
        symbolSize: 5,
        lineStyle: {
          width: i === 0 ? 2.5 : 1.5,
          type: (['solid', 'dashed', 'dotted'] as const)[i],
        },
        color: seriesColor([0, 1, 2][i] ?? 0),
      })),
    }),
    [list, length],
  );
  return (
    <Chart
      label="Parallel efficiency, load balance and communication efficiency over time"
      option={option}
      height={170}
      alternative={
        <table>
          <caption>Efficiency over time</caption>
          <thead>
            <tr>
              <th>from</th>
              {metrics.map(([, name]) => (
                <th key={name}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {list.map((e) => (
              <tr key={e.from_s}>
                <td>{clock(e.from_s, length)}</td>
                {metrics.map(([metric]) => (
                  <td key={metric}>{share(e[metric])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      }
    />
  );
}
