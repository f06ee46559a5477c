import { useState, type ReactNode } from 'react';
import { useQuery, withParams, type Trend } from '../../api/index.ts';
import { duration, micro } from '../../format/index.ts';
import { choice, go, text, useParam, useRoute } from '../../route/index.ts';
import {
  Empty,
  ended,
  Failure,
  Float,
  Notice,
  Segmented,
  useWidth,
  Waiting,
} from '../../ui/index.ts';
import { runText } from './pair.ts';
import { keyOfSeries, pointLines, seriesName, type Metric } from './trend.ts';
import { TrendChart, type Pointed } from './TrendChart.tsx';

const noText = text('');
const metricWord = choice('time', 'lost');
const metrics = [
  ['time', 'All time', 'The time of all calls'],
  ['lost', 'Lost time', 'What anomalies lost'],
] as const;

/** Since when is it so? All runs in the order of their start, a small chart for each function that differs most. */
export function TrendPanel({ choices }: { choices: ReactNode }) {
  const { query } = useRoute();
  const [metric, setMetric] = useParam('metric', metricWord);
  const [name, setName] = useParam('runs', noText);
  const asked = useQuery<Trend>(
    withParams('api/v1/compare/trend', { name, program: query.program }),
    { every: 30_000, keep: true },
  );
  const t = asked.data;
  return (
    <>
      {t && t.runs.length > 1 && (
        <h1 className={`verdict ${t.verdict.level}`}>{micro(ended(t.verdict.sentence))}</h1>
      )}
      <section className="panel filled" aria-label="Over all runs">
        <div className="tools">
          {choices}
          <Segmented
            small
            label="Which time"
            choices={metrics}
            chosen={metric}
            onChoose={setMetric}
          />
          <input
            className="field"
            type="search"
            placeholder="Runs named…"
            aria-label="Only runs that have this in their names"
            value={name}
            onChange={(e) => setName(e.target.value)}
          />
          <span className="push" />
          <span className="muted">A click on a run compares it with the one before it</span>
        </div>
        {t?.notices.map((n) => (
          <Notice key={n.sentence} level={n.level}>
            {ended(n.sentence)}
          </Notice>
        ))}
        {!t && asked.problem && <Failure problem={asked.problem} retry={asked.refresh} />}
        {!t && !asked.problem && <Waiting label="holding the runs against each other" lines={8} />}
        {t && t.runs.length < 2 && <TooFew name={name} />}
        {t && t.runs.length > 1 && <Multiples trend={t} metric={metric} />}
      </section>
    </>
  );
}

function TooFew({ name }: { name: string }) {
  if (name !== '')
    return <Empty title={`Fewer than two finished runs have “${name}” in their names.`} />;
  return (
    <Empty title="Fewer than two runs are finished.">
      <p>
        All finished runs of the store are here, and those that the page was given with --compare,
        which may be repeated.
      </p>
    </Empty>
  );
}

function Multiples({ trend: t, metric }: { trend: Trend; metric: Metric }) {
  const [pointed, point] = useState<Pointed>();
  const [measure, width] = useWidth();
  const all = metric === 'lost' ? t.lost : t.time;
  const series = all.find((s) => keyOfSeries(s) === pointed?.of);
  const run = pointed && t.runs[pointed.at];
  const compare = (at: number) => {
    const [a, b] = [t.runs[at - 1], t.runs[at]];
    if (a && b)
      go({
        query: { a: a.id, b: b.id, mode: metric === 'lost' ? undefined : 'time', sel: undefined },
      });
  };
  return (
    <div className="trend-grid" ref={measure}>
      {all.map((s) => (
        <TrendChart
          key={keyOfSeries(s)}
          of={s}
          trend={t}
          metric={metric}
          pointed={pointed}
          onPoint={point}
          onChoose={compare}
        />
      ))}
      {pointed && series && run && (
        <Float
          x={pointed.x}
          y={pointed.y}
          width={width}
          heading={runText(run)}
          lines={[
            ...(run.started === undefined
              ? []
              : [['started', new Date(run.started).toLocaleString()] as const]),
            ...pointLines(t, series, metric, pointed.at),
          ]}
        />
      )}
      {all.length < 2 && (
        <p className="muted trend-none">
          {metric === 'lost'
            ? 'No run lost anything to anomalies, or all lost the same.'
            : 'The times of functions are the same in all runs, or not known.'}
        </p>
      )}
      <table className="visually-hidden">
        <caption>{metric === 'lost' ? 'Lost to anomalies' : 'Time of all calls'}</caption>
        <thead>
          <tr>
            <th scope="col">Run</th>
            {all.map((s) => (
              <th key={keyOfSeries(s)} scope="col">
                {seriesName(s)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {t.runs.map((r, at) => (
            <tr key={r.id}>
              <th scope="row">{runText(r)}</th>
              {all.map((s) => (
                <td key={keyOfSeries(s)}>{duration(s.values_us[at] ?? undefined)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
