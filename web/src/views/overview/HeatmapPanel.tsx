import { useState } from 'react';
import { useLive, useRunQuery, type Heatmap } from '../../api/index.ts';
import { clock, count, duration } from '../../format/index.ts';
import { choice, useHref, useParam, useRoute, useSpan } from '../../route/index.ts';
import {
  Empty,
  ExportFigure,
  Failure,
  ScaleChoice,
  Segmented,
  Term,
  Waiting,
} from '../../ui/index.ts';
import { rowName, rowRanks } from './heat.ts';
import { HeatCanvas } from './HeatCanvas.tsx';
import { Scale } from './Scale.tsx';

const metric = choice('own', 'lost', 'anomalies');

const metrics = [
  ['own', 'own slowness (causes)', 'Lost time except waits for other ranks: shows the causes'],
  ['lost', 'lost time'],
  ['anomalies', 'count'],
] as const;

const titles = { lost: 'Lost time', own: 'Own slowness (causes)', anomalies: 'Anomalies' };

/** Lost time by rank and time, or anomaly counts if lost time is unknown. */
export function HeatmapPanel(props: { warming: boolean; countsOnly?: boolean }) {
  const { query } = useRoute();
  const { t0, t1 } = useSpan();
  const [chosen, show] = useParam('metric', metric);
  const shown = props.countsOnly === true ? 'anomalies' : chosen;
  const result = useRunQuery<Heatmap>(
    'heatmap',
    {
      from: t0,
      to: t1,
      columns: 240,
      rows: 300,
      metric: shown,
      program: query.program,
      host: query.host,
    },
    { every: 2000, keep: true },
  );
  const map = result.data;
  const [boxing, box] = useState(false);
  return (
    <section className="panel heat" aria-labelledby="heat-title" data-figure>
      <header className="panel-head">
        <h2 id="heat-title">{titles[shown]} by rank over time</h2>
        {shown === 'own' && <Term name="own slowness" mark />}
        <span className="push" />
        {map && <Scale map={map} />}
        <ScaleChoice of="colors" />
        {props.countsOnly !== true && (
          <button
            type="button"
            className="button"
            aria-pressed={boxing}
            title="Draw a box to explain its anomalies; or drag with Shift, or press e on a cell"
            onClick={() => box(!boxing)}
          >
            Explain box
          </button>
        )}
        {props.countsOnly !== true && (
          <Segmented label="Colors" choices={metrics} chosen={shown} onChoose={show} />
        )}
        <ExportFigure title={`${titles[shown]} by rank over time`} />
      </header>
      {!map && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!map && !result.problem && <Waiting label="loading the heatmap" lines={6} />}
      {map?.rows.length === 0 && <Empty title="No ranks." />}
      {map && map.rows.length > 0 && (
        <>
          <HeatCanvas
            map={map}
            warming={props.warming}
            boxing={boxing}
            onBoxed={() => box(false)}
          />
          <HeatWords map={map} />
          <NoDataWords map={map} />
        </>
      )}
    </section>
  );
}

/** The worst rows as links, for screen readers and keyboards. */
function HeatWords({ map }: { map: Heatmap }) {
  const href = useHref();
  const { overview } = useLive();
  const programs = (overview?.programs.length ?? 0) > 1;
  const counts = map.metric === 'anomalies';
  const worst = map.rows
    .filter((r) => r.anomalies > 0)
    .sort((a, b) => (counts ? b.anomalies - a.anomalies : b.lost_us - a.lost_us))
    .slice(0, 6);
  if (worst.length === 0) {
    return (
      <p className="heat-words">
        {map.metric === 'own'
          ? 'No rank lost time in this range except by waiting.'
          : 'No anomalies in this time range.'}
      </p>
    );
  }
  const left = map.rows.filter((r) => r.anomalies > 0).length - worst.length;
  return (
    <p className="heat-words">
      <span>Worst: </span>
      {worst.map((r) => (
        <a
          key={`${r.program}:${r.first_rank}`}
          href={href({
            view: 'findings',
            query: { rank: rowRanks(r), ...(programs ? { program: r.program } : {}) },
          })}
          title={`${count(r.anomalies)} anomalies; show the findings of ${rowName(r, programs)}`}
        >
          {rowName(r, programs)} {r.host !== '' && <span className="muted">{r.host}</span>}{' '}
          {counts ? `· ${count(r.anomalies)}` : duration(r.lost_us)}
        </a>
      ))}
      {left > 0 && <span className="muted">and {count(left)} more rows</span>}
    </p>
  );
}

/** Names the rows without data. */
function NoDataWords({ map }: { map: Heatmap }) {
  const { overview } = useLive();
  const programs = (overview?.programs.length ?? 0) > 1;
  const words = map.rows
    .filter((r) => r.silent === true || r.until_s !== undefined)
    .map((r) => rowName(r, programs) + (r.silent === true ? '' : ` after ${clock(r.until_s)}`));
  if (words.length === 0) return null;
  const most = 8;
  const left = words.length - most;
  return (
    <p className="heat-words">
      No data: {words.slice(0, most).join(', ')}
      {left > 0 ? ` and ${count(left)} more rows` : ''}.
    </p>
  );
}
