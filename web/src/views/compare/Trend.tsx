import { useState, type ReactNode } from 'react';
import { useQuery, withParams, type Trend } from '../../api/index.ts';
import { duration, micro } from '../../format/index.ts';
import { choice, go, text, useParam, useRoute } from '../../route/index.ts';
import {
  Empty,
  ended,
  ExportFigure,
  Failure,
  Float,
  Notice,
  PlainTable,
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
  ['lost', 'Lost time', 'Time lost to anomalies'],
] as const;

/** Trends over all runs by start time, with a small chart for each function that changed most. */
export function TrendPanel({ choices }: { choices: ReactNode }) {
  const { query } = useRoute();
  const [metric, setMetric] = useParam('metric', metricWord);
  const [name, setName] = useParam('runs', noText);
  const result = useQuery<Trend>(
    withParams('api/v1/compare/trend', { name, program: query.program }),
    { every: 30_000, keep: true },
  );
  const t = result.data;
  return (
    <>
      {t && t.runs.length > 1 && (
        <h1 className={`verdict ${t.verdict.level}`}>{micro(ended(t.verdict.sentence))}</h1>
      )}
      <section className="panel filled" aria-label="Trend" data-figure>
        <div className="tools">
          {choices}
          <Segmented small label="Metric" choices={metrics} chosen={metric} onChoose={setMetric} />
          <input
            className="field"
            type="search"
            placeholder="Runs named…"
            aria-label="Filter runs by name"
            value={name}
            onChange={(e) => setName(e.target.value)}
          />
          <span className="push" />
          <span className="muted">Click a run to compare it with the previous one</span>
          {t && t.runs.length > 1 && <ExportFigure title="Trend over runs" />}
        </div>
        {t?.notices.map((n) => (
          <Notice key={n.sentence} level={n.level}>
            {ended(n.sentence)}
          </Notice>
        ))}
        {!t && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
        {!t && !result.problem && <Waiting label="comparing the runs" lines={8} />}
        {t && t.runs.length < 2 && <TooFew name={name} />}
        {t && t.runs.length > 1 && <Multiples trend={t} metric={metric} />}
      </section>
    </>
  );
}

function TooFew({ name }: { name: string }) {
  if (name !== '') return <Empty title={`Fewer than two finished runs match “${name}”.`} />;
  return (
    <Empty title="Fewer than two finished runs.">
      <p>
        The trend includes all finished runs in the store and those added with --compare, which may
        be repeated.
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
            ? 'No change in lost time over the runs.'
            : 'No change in function times over the runs, or times unknown.'}
        </p>
      )}
      <PlainTable name="trend" title="Trend over runs">
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
      </PlainTable>
    </div>
  );
}
