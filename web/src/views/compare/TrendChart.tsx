import type { KeyboardEvent, MouseEvent } from 'react';
import type { Trend, TrendSeries } from '../../api/index.ts';
import { duration } from '../../format/index.ts';
import { FunctionName, useWidth } from '../../ui/index.ts';
import { runText } from './pair.ts';
import {
  chartWords,
  dayOf,
  keyOfSeries,
  pointLines,
  pointsOf,
  sinceWords,
  type Metric,
} from './trend.ts';

const side = 8;
const top = 16;
const tall = 64;
const bottom = 18;
const height = top + tall + bottom;

/** The run under the pointer, marked in all charts; of is the chart under the pointer, x and y the position. */
export interface Pointed {
  at: number;
  of: string;
  x: number;
  y: number;
}

/** The chart of a function over all runs; all charts share the x axis. */
export function TrendChart(props: {
  of: TrendSeries;
  trend: Trend;
  metric: Metric;
  pointed: Pointed | undefined;
  onPoint: (pointed: Pointed | undefined) => void;
  onChoose: (at: number) => void;
}) {
  const { of: s, trend, metric, pointed } = props;
  const key = keyOfSeries(s);
  const [measure, measured] = useWidth();
  const width = measured > 0 ? measured : 240;
  const wide = width - 2 * side;
  const last = trend.runs.length - 1;
  const x = (at: number) => side + (at / Math.max(last, 1)) * wide;
  const y = (part: number) => top + tall * (1 - part);
  const points = pointsOf(s);
  const most = Math.max(...s.values_us.map((v) => v ?? 0));
  const grown = s.since?.change === 'worse' || s.since?.change === 'new';
  const kind = s.since ? (grown ? 'worse' : 'better') : '';
  const before = s.since ? points.find((p) => p.at === s.since?.before) : undefined;
  const at = pointed?.at;
  const here = pointed?.of === key ? pointed.at : undefined;
  const run = here === undefined ? undefined : trend.runs[here];
  const within = (to: number) => Math.min(last, Math.max(0, to));
  const runAt = (event: MouseEvent) => {
    const left = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return within(Math.round(((left - side) / wide) * last));
  };
  const point = (box: HTMLElement, to: number) =>
    props.onPoint({ of: key, at: to, x: box.offsetLeft + x(to), y: box.offsetTop + height - 14 });
  const keys = (event: KeyboardEvent<HTMLElement>) => {
    const box = event.currentTarget;
    const from = here ?? s.since?.run ?? last;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) point(box, here === undefined ? from : within(from + step));
    else if (event.key === 'Home') point(box, 0);
    else if (event.key === 'End') point(box, last);
    else if (event.key === 'Enter') props.onChoose(from);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <article className={`trend-chart ${kind}`}>
      <h3>{s.program < 0 ? 'All functions' : <FunctionName name={s.function} most={34} />}</h3>
      <p className="trend-since" title={sinceWords(trend, s)}>
        <span className={`compare-kind ${s.since?.change ?? 'same'}`}>{sinceWords(trend, s)}</span>
      </p>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={measure}
        className="trend-box"
        style={{ height }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
        tabIndex={0}
        aria-label={chartWords(trend, s, metric)}
        onPointerMove={(event) => point(event.currentTarget, runAt(event))}
        onPointerLeave={() => props.onPoint(undefined)}
        onBlur={() => props.onPoint(undefined)}
        onClick={(event) => props.onChoose(runAt(event))}
        onKeyDown={keys}
      >
        <svg width={width} height={height} aria-hidden="true">
          {s.since && (
            <rect
              className="trend-turned"
              x={x(s.since.run - 0.5)}
              y={top}
              width={Math.max(0, x(last) + side - x(s.since.run - 0.5))}
              height={tall}
            />
          )}
          <line
            className="trend-axis"
            x1={side}
            x2={width - side}
            y1={y(0) + 0.5}
            y2={y(0) + 0.5}
          />
          {before && (
            <line
              className="trend-before"
              x1={side}
              x2={width - side}
              y1={y(before.y)}
              y2={y(before.y)}
            />
          )}
          {at !== undefined && (
            <line className="trend-at" x1={x(at)} x2={x(at)} y1={top - 4} y2={y(0)} />
          )}
          <polyline
            className="trend-line"
            points={points.map((p) => `${x(p.at).toFixed(1)},${y(p.y).toFixed(1)}`).join(' ')}
          />
          {points.map((p) => (
            <circle
              key={p.at}
              className={s.since && p.at >= s.since.run ? 'turned' : ''}
              cx={x(p.at)}
              cy={y(p.y)}
              r={p.at === at ? 5 : wide / (last + 1) > 9 ? 3 : 2}
            />
          ))}
          <text x={side} y={top - 5}>
            {duration(most)}
          </text>
          <text x={side} y={height - 4}>
            {dayOf(trend.runs, 0)}
          </text>
          <text x={width - side} y={height - 4} textAnchor="end">
            {dayOf(trend.runs, last)}
          </text>
        </svg>
        <span className="visually-hidden" aria-live="polite">
          {run &&
            here !== undefined &&
            [runText(run), ...pointLines(trend, s, metric, here).map((l) => l.join(' '))].join(
              ', ',
            )}
        </span>
      </div>
    </article>
  );
}
