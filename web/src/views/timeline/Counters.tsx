import { useState, type KeyboardEvent, type PointerEvent } from 'react';
import { useRunQuery, type CounterSeries, type CounterTimeline } from '../../api/index.ts';
import { clock } from '../../format/index.ts';
import { text, useParam } from '../../route/index.ts';
import { ExportFigure, Float, Notice, TimeAxis, useWidth } from '../../ui/index.ts';
import {
  areaPath,
  columnsIn,
  linePath,
  nearest,
  rangeOf,
  unitOf,
  valueText,
  type Scale,
  type Span,
} from './series.ts';

const noText = text('');
const height = 96;
const pad = 3; // pixels above and below the lines

/** A counter over time below the timeline: least, mean and greatest value of all ranks, and of the chosen ones. */
export function Counters(props: {
  filter: { program?: string | undefined; host?: string | undefined; rank?: string | undefined };
  programs: boolean;
  span: Span | undefined;
}) {
  const [chosen, choose] = useParam('counter', noText);
  const which = /^(\d+):(.*)$/s.exec(chosen);
  const { filter } = props;
  const result = useRunQuery<CounterTimeline>(
    'timeline/counters',
    { ...filter, program: which?.[1] ?? filter.program, counter: which?.[2] },
    { every: 2000, keep: true },
  );
  const all = useRunQuery<CounterTimeline>(
    which ? 'timeline/counters' : undefined,
    { program: filter.program },
    { keep: true },
  );
  const of = result.data;
  const list = (which ? all.data : of)?.counters ?? [];
  if (!of) return result.problem ? <Notice level="watch">{result.problem.message}</Notice> : null;
  if (list.length === 0 && of.counters.length === 0) return null;
  const selected = [
    filter.rank === undefined ? '' : `rank ${filter.rank}`,
    filter.host === undefined ? '' : `host ${filter.host}`,
  ]
    .filter((t) => t !== '')
    .join(', ');
  return (
    <section className="panel" aria-labelledby="counters-title" data-figure>
      <header className="panel-head">
        <h2 id="counters-title">Counter over time</h2>
        <select
          className="field"
          aria-label="Counter"
          value={`${of.program}:${of.counter}`}
          onChange={(e) => choose(e.target.value)}
        >
          {of.counter === '' && <option value="0:">{which?.[2] ?? 'none'} (not recorded)</option>}
          {list.map((c) => (
            <option key={`${c.program}:${c.name}`} value={`${c.program}:${c.name}`}>
              {props.programs ? `program ${c.program}, ${c.name}` : c.name}
            </option>
          ))}
        </select>
        <span className="push" />
        <ul className="activity-legend">
          <li>
            <span className="swatch counter-band" /> least to greatest of all ranks
          </li>
          <li>
            <span className="swatch counter-mean" /> mean
          </li>
          {of.selected && (
            <li>
              <span className="swatch counter-selected" /> {selected}
            </li>
          )}
        </ul>
        <ExportFigure title={of.counter} />
      </header>
      {of.counter !== '' && (
        <Strip of={of} span={props.span ?? { t0: of.from_s, t1: of.to_s }} selected={selected} />
      )}
      {(of.more || of.group > 1) && (
        <p className="activity-note">
          {of.group > 1 && `Readings of ${of.group} neighboring ranks are kept together. `}
          {of.more &&
            'There are more counters: readings over time are kept of 32, first those of resources.'}
        </p>
      )}
    </section>
  );
}

function Strip({ of, span, selected }: { of: CounterTimeline; span: Span; selected: string }) {
  const [measure, width] = useWidth();
  const [column, setColumn] = useState<number>();
  const columns = columnsIn(of, span);
  const shown = [of.all, ...(of.selected ? [of.selected] : [])];
  const range = rangeOf(
    shown.flatMap((s) => [s.min, s.max]),
    columns,
  );
  const unit = unitOf(of.counter);
  const per = (of.to_s - of.from_s) / Math.max(of.columns, 1);
  const length = Math.max(span.t1 - span.t0, 1e-9);
  const at: Scale = {
    x: (c) => ((of.from_s + c * per - span.t0) / length) * width,
    y: (v) => {
      const [least, most] = range ?? [0, 1];
      return height - pad - ((v - least) / (most - least)) * (height - 2 * pad);
    },
  };
  const move = (event: PointerEvent) => {
    const r = event.currentTarget.getBoundingClientRect();
    const t = span.t0 + ((event.clientX - r.left) / Math.max(r.width, 1)) * length;
    setColumn(nearest(of.all.mean, columns, Math.floor((t - of.from_s) / per)));
  };
  const keys = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    const from = column ?? columns[0];
    const rest: readonly [number, number] =
      column === undefined ? columns : by > 0 ? [from + 1, columns[1]] : [columns[0], from];
    setColumn(nearest(of.all.mean, rest, by > 0 ? rest[0] : rest[1] - 1) ?? column);
    event.preventDefault();
    event.stopPropagation();
  };
  const text = column === undefined ? undefined : describe(column);
  function describe(c: number) {
    const values = (s: CounterSeries) =>
      s.mean[c] === null || s.mean[c] === undefined
        ? 'no reading'
        : `${valueText(s.min[c], '')} to ${valueText(s.max[c], '')}, mean ${valueText(s.mean[c], unit)}`;
    const from = of.from_s + c * per;
    return {
      heading: `${clock(from, length)} to ${clock(from + per, length)}`,
      lines: [
        ['all ranks', values(of.all)],
        ...(of.selected ? [[selected, values(of.selected)] as const] : []),
      ] as const,
    };
  }
  return (
    <div className="activity-grid">
      <div className="activity-labels counter-labels" style={{ height }} aria-hidden="true">
        {range && (
          <>
            <span style={{ top: 0 }}>{valueText(range[1], unit)}</span>
            <span style={{ bottom: 0 }}>{valueText(range[0], unit)}</span>
          </>
        )}
      </div>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={measure}
        className="counter-box"
        style={{ height }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
        tabIndex={0}
        aria-label={`${of.counter} over time, least, mean and greatest of all ranks${selected === '' ? '' : ` and of ${selected}`}. Arrows move in time.`}
        onPointerMove={move}
        onPointerLeave={() => setColumn(undefined)}
        onBlur={() => setColumn(undefined)}
        onKeyDown={keys}
      >
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
          {shown.map((s, i) => (
            <g key={i} className={i === 0 ? 'counter-all' : 'counter-some'}>
              <path className="band" d={areaPath(s.min, s.max, columns, at)} />
              <path className="mean" d={linePath(s.mean, columns, at)} />
            </g>
          ))}
        </svg>
        {!range && <p className="counter-none">No readings in this part of the run.</p>}
        {text && <Float x={at.x((column ?? 0) + 0.5)} y={0} width={width} {...text} />}
        <span className="visually-hidden" aria-live="polite">
          {text ? [text.heading, ...text.lines.map((l) => l.join(' '))].join(', ') : ''}
        </span>
      </div>
      <TimeAxis from={span.t0} to={span.t1} />
    </div>
  );
}
