import { useMemo, useState } from 'react';
import type { Model } from '../api/index.ts';
import { count, duration, short } from '../format/index.ts';
import { Float, ScaleChoice, useAxisScale, useWidth } from '../ui/index.ts';
import { apart, barAt, marksOf, tellingLimit, type Marks } from './marks.ts';
import { histogramWords } from './words.ts';
import './histogram.css';

const top = 34; // room for labels of lines
const bottom = 20;
const side = 34;

/** The histogram of a function's times, with an optional mark for one execution. */
export function Histogram(props: { model: Model; value?: number; height?: number }) {
  const { model, value, height = 200 } = props;
  const [measure, measured] = useWidth();
  const width = measured > 0 ? measured : 480;
  const [scale] = useAxisScale();
  const marks = useMemo(() => marksOf(model, value, scale), [model, value, scale]);
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const wide = width - side - 8;
  const tall = height - top - bottom;
  const x = (at: number) => side + at * wide;
  const bar = pointer ? barAt(marks, (pointer.x - side) / wide) : undefined;
  return (
    <div
      className="histogram"
      ref={measure}
      onPointerMove={(event) => {
        const r = event.currentTarget.getBoundingClientRect();
        setPointer({ x: event.clientX - r.left, y: event.clientY - r.top });
      }}
      onPointerLeave={() => setPointer(undefined)}
    >
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={histogramWords(model, value, scale)}
      >
        {marks.usual.map((b, i) => (
          <rect
            key={i}
            className="histogram-usual"
            x={x(b.left)}
            y={top}
            width={Math.max(2, x(b.right) - x(b.left))}
            height={tall}
          />
        ))}
        <Axes marks={marks} x={x} tall={tall} width={width} height={height} />
        {marks.bars.map((b) => (
          <rect
            key={b.low}
            className={b === bar ? 'histogram-bar hot' : 'histogram-bar'}
            x={x(b.left)}
            y={top + tall * (1 - b.height)}
            width={Math.max(1.5, x(b.right) - x(b.left) - 0.6)}
            height={tall * b.height}
          />
        ))}
        {marks.limits.map((l) => (
          <line
            key={l.value}
            className="histogram-limit"
            x1={x(l.at)}
            x2={x(l.at)}
            y1={20}
            y2={top + tall}
          />
        ))}
        {marks.value && (
          <g className="histogram-value">
            <line x1={x(marks.value.at)} x2={x(marks.value.at)} y1={12} y2={top + tall} />
            <path d={`M${x(marks.value.at)} ${top + tall}l-5 8h10z`} />
          </g>
        )}
        <Labels marks={marks} x={x} width={width} />
      </svg>
      <div className="histogram-scale">
        <ScaleChoice of="both axes" />
      </div>
      {pointer && bar && (
        <Float
          x={pointer.x}
          y={pointer.y}
          width={width}
          heading={`${duration(bar.low)} to ${duration(bar.high)}`}
          lines={[['calls', count(bar.count)]]}
        />
      )}
    </div>
  );
}

function Axes(props: {
  marks: Marks;
  x: (at: number) => number;
  tall: number;
  width: number;
  height: number;
}) {
  const { marks, x, tall, width, height } = props;
  return (
    <g className="histogram-axes">
      <line x1={side} x2={width - 8} y1={top + tall + 0.5} y2={top + tall + 0.5} />
      {marks.counts.map((c) => {
        const y = top + tall * (1 - c.at);
        return (
          <g key={c.value}>
            <line className="faint" x1={side} x2={width - 8} y1={y} y2={y} />
            <text x={side - 5} y={y + 4} textAnchor="end">
              {short(c.value)}
            </text>
          </g>
        );
      })}
      {apart(marks.ticks, width, 46).map((t) => {
        const at = x(t.at);
        return (
          <g key={t.value}>
            <line x1={at} x2={at} y1={top + tall} y2={top + tall + 4} />
            <text x={at} y={height - 4} textAnchor="middle">
              {duration(t.value).replace(/\.0+ /, ' ')}
            </text>
          </g>
        );
      })}
    </g>
  );
}

/** Labels of the lines, on the side with more space. */
function Labels({ marks, x, width }: { marks: Marks; x: (at: number) => number; width: number }) {
  const anchor = (at: number) => (at > width / 2 ? 'end' : 'start');
  const beside = (at: number) => (at > width / 2 ? at - 5 : at + 5);
  const limit = tellingLimit(marks);
  return (
    <g className="histogram-labels">
      {marks.value && (
        <text
          className="this"
          x={beside(x(marks.value.at))}
          y={12}
          textAnchor={anchor(x(marks.value.at))}
        >
          this one {duration(marks.value.value)}
        </text>
      )}
      {limit && (
        <text className="limit" x={beside(x(limit.at))} y={28} textAnchor={anchor(x(limit.at))}>
          flagged {limit.side} {duration(limit.value)}
        </text>
      )}
    </g>
  );
}
