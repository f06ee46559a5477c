import { useState, type ReactNode } from 'react';
import { useLive, useRunQuery, type FunctionDetail, type FunctionPath } from '../../api/index.ts';
import { groupWords, kindVar } from '../../color/index.ts';
import { bare, clock, count, duration, percent, plural, source } from '../../format/index.ts';
import { algorithmWords, flaggedWords, Histogram, usualWords } from '../../histogram/index.ts';
import { useHref } from '../../route/index.ts';
import {
  CallPath,
  copyText,
  Empty,
  ExportFigure,
  Failure,
  Notice,
  Sparkline,
  useWidth,
  Waiting,
} from '../../ui/index.ts';
import { whenKnown } from './columns.tsx';
import { RankBars } from './RankBars.tsx';
import { WorstEvents } from './WorstEvents.tsx';

/** Details of a function beside the table. */
export function Detail({ id, onClose }: { id: string; onClose: () => void }) {
  const result = useRunQuery<FunctionDetail>(
    `functions/${encodeURIComponent(id)}`,
    {},
    { every: 5000 },
  );
  const d = result.data;
  return (
    <aside className="panel function-detail" aria-label="Function details">
      <header className="panel-head">
        <h2>Function</h2>
        <span className="push" />
        <button
          type="button"
          className="button quiet"
          aria-label="Close the function"
          onClick={onClose}
        >
          ×
        </button>
      </header>
      {!d && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!d && !result.problem && <Waiting label="loading the function" lines={8} />}
      {d && <Inside detail={d} />}
    </aside>
  );
}

function Inside({ detail: d }: { detail: FunctionDetail }) {
  const href = useHref();
  const { overview } = useLive();
  const [status, setStatus] = useState('');
  const live = overview?.live === true;
  const place = source(d.function);
  return (
    <div className="function-body">
      <div>
        <p className="function-name name">{bare(d.function)}</p>
        <p className="function-links">
          {place !== '' && <span className="muted">{place}</span>}
          <span className="muted">{groupWords[d.group]}</span>
          {d.anomalies > 0 && (
            <a href={href({ view: 'findings', query: { q: d.function } })}>findings</a>
          )}
          <button
            type="button"
            className="link"
            title={d.function}
            onClick={() =>
              void copyText(d.function).then((ok) => setStatus(ok ? 'copied' : 'copy failed'))
            }
          >
            copy name
          </button>
          <span role="status" className="muted">
            {status}
          </span>
        </p>
      </div>
      <Numbers detail={d} live={live} />
      <ModelPart detail={d} live={live} />
      <OverTime detail={d} />
      <RankBars ranks={d.ranks} anomalies={d.anomalies} name={bare(d.function)} />
      <Paths paths={d.paths} name={bare(d.function)} />
      {d.anomalies > 0 && <WorstEvents name={d.function} program={d.program} />}
    </div>
  );
}

function Numbers({ detail: d, live }: { detail: FunctionDetail; live: boolean }) {
  const when = whenKnown(live);
  const shown: [string, string, string | undefined][] = [
    ['lost', duration(d.lost_us), undefined],
    ['anomalies', count(d.anomalies), percentOf(d.anomalous_calls_percent, 'of calls')],
    ['calls', count(d.calls), undefined],
    ['own time', duration(d.exclusive_us), undefined],
    ['mean', duration(d.exclusive_mean_us), undefined],
    ['longest', duration(d.exclusive_max_us), undefined],
    ['inclusive', duration(d.inclusive_us), undefined],
  ];
  return (
    <dl className="function-numbers">
      {shown.map(([name, value, note]) => (
        <div key={name} title={value === '–' ? when : undefined}>
          <dt>{name}</dt>
          <dd>
            {value} {note !== undefined && <span className="muted">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function percentOf(p: number | undefined, of: string): string | undefined {
  return p === undefined || p === 0 ? undefined : `${percent(p)} ${of}`;
}

/** A part of the details; figure names it if it is a chart. */
export function Part(props: {
  title: string;
  note?: ReactNode;
  figure?: string;
  children: ReactNode;
}) {
  return (
    <section className="function-part" data-figure={props.figure === undefined ? undefined : ''}>
      <div className="function-part-head">
        <h3>
          {props.title} <span className="muted">{props.note}</span>
        </h3>
        {props.figure !== undefined && <ExportFigure title={props.figure} />}
      </div>
      {props.children}
    </section>
  );
}

/** The usual times of the function. */
function ModelPart({ detail: d, live }: { detail: FunctionDetail; live: boolean }) {
  const { model } = d;
  if (!model) {
    return (
      <Part title="Call times">
        <Empty title="No model.">
          <p>
            {live
              ? 'The model appears when the first calls are judged and stored.'
              : 'The function has too few calls or is excluded.'}
          </p>
        </Empty>
      </Part>
    );
  }
  return (
    <Part
      title="Call times"
      note={`${count(model.samples)} samples`}
      figure={`Call times of ${bare(d.function)}`}
    >
      {model.warming && <Notice level="unknown">Warming up: too few samples.</Notice>}
      <Histogram model={model} height={170} />
      <p className="function-model">
        usual {usualWords(model)}; flagged {flaggedWords(model)}
        {'; '}
        <span title={algorithmWords[model.algorithm]}>{model.algorithm}</span>
      </p>
    </Part>
  );
}

/** Lost time over the run. */
function OverTime({ detail: d }: { detail: FunctionDetail }) {
  const { strip } = d;
  const [measure, width] = useWidth();
  const first = strip.series[0];
  if (!first) return null;
  const columns = first.lost_us.map((_, i) =>
    strip.series.reduce((n, s) => n + (s.lost_us[i] ?? 0), 0),
  );
  const span = strip.to_s - strip.from_s;
  const most = Math.max(...columns);
  const at = columns.indexOf(most);
  const time = (i: number) => clock(strip.from_s + (i / columns.length) * span, span);
  return (
    <Part
      title="Lost over time"
      note={`most ${duration(most)} at ${time(at)}`}
      figure={`Lost time of ${bare(d.function)} over time`}
    >
      <div className="function-strip" ref={measure}>
        <Sparkline
          values={columns}
          width={Math.max(width, 100)}
          height={34}
          color={kindVar(first.kind)}
          label={`Lost time from ${time(0)} to ${time(columns.length)}: most is ${duration(most)} at ${time(at)}`}
        />
        <div className="function-strip-axis" aria-hidden="true">
          <span>{time(0)}</span>
          <span>{time(columns.length)}</span>
        </div>
      </div>
    </Part>
  );
}

const fewPaths = 6;

/** The call paths of the function. */
function Paths({ paths, name }: { paths: readonly FunctionPath[]; name: string }) {
  const [all, setAll] = useState(false);
  if (paths.length === 0) return null;
  const most = Math.max(...paths.map((p) => p.lost_us), 1);
  const shown = all ? paths : paths.slice(0, fewPaths);
  return (
    <Part
      title="Call paths"
      note={plural(paths.length, 'path')}
      figure={`Call paths of ${name} by lost time`}
    >
      <ul className="function-paths">
        {shown.map((p, i) => (
          <li key={i}>
            <span className="amount" style={{ width: `${(p.lost_us / most) * 100}%` }} />
            <span className="cut">
              <CallPath path={p.call_path} parts={3} />
            </span>
            <span className="nowrap">
              {p.anomalies === 0
                ? 'nothing lost'
                : `${duration(p.lost_us)}, ${plural(p.anomalies, 'anomaly', 'anomalies')}`}
            </span>
          </li>
        ))}
      </ul>
      {paths.length > fewPaths && (
        <button type="button" className="button quiet" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show ${count(paths.length)}`}
        </button>
      )}
    </Part>
  );
}
