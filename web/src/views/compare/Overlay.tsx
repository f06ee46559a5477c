import { useMemo, useState } from 'react';
import type { HistogramPair } from '../../api/index.ts';
import { count, duration, percent } from '../../format/index.ts';
import { Float, ScaleChoice, useAxisScale, useWidth } from '../../ui/index.ts';
import { distanceWords, outline, stepsOf } from './overlay.ts';

const side = 40;
const bottom = 20;
const top = 8;

/** Overlaid histograms of a function's call times in both runs. */
export function Overlay({ pair, height = 190 }: { pair: HistogramPair; height?: number }) {
  const [measure, measured] = useWidth();
  const width = measured > 0 ? measured : 380;
  const [scale] = useAxisScale();
  const steps = useMemo(() => stepsOf(pair, scale), [pair, scale]);
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const wide = width - side - 8;
  const tall = height - top - bottom;
  const x = (at: number) => side + at * wide;
  const y = (h: number) => top + tall * (1 - h);
  const at = pointer ? (pointer.x - side) / wide : -1;
  const bin = at < 0 || at > 1 ? -1 : steps.sides.findIndex((s, i) => i > 0 && at < s) - 1;
  const ticks = steps.ticks.filter(
    (t, i) => i === 0 || (t.at - (steps.ticks[i - 1]?.at ?? 0)) * wide > 46,
  );
  return (
    <div
      className="overlay"
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
        aria-label={`Histograms of ${count(pair.samples[0])} calls in A and ${count(pair.samples[1])} in B, both axes ${scale === 'log' ? 'logarithmic' : 'linear'}. ${distanceWords(pair)}`}
      >
        {steps.shares.map((s) => (
          <g key={s.value} className="overlay-axis">
            <line className="faint" x1={side} x2={width - 8} y1={y(s.at)} y2={y(s.at)} />
            <text x={side - 5} y={y(s.at) + 4} textAnchor="end">
              {percent(100 * s.value).replace(/\.0+ /, ' ')}
            </text>
          </g>
        ))}
        <path className="overlay-a" d={outline(steps.sides, steps.heights[0], x, y)} />
        <path className="overlay-b" d={outline(steps.sides, steps.heights[1], x, y)} />
        {steps.at !== undefined && (
          <line className="overlay-at" x1={x(steps.at)} x2={x(steps.at)} y1={top} y2={y(0)} />
        )}
        <g className="overlay-axis">
          <line x1={side} x2={width - 8} y1={y(0) + 0.5} y2={y(0) + 0.5} />
          {ticks.map((t) => (
            <g key={t.value}>
              <line x1={x(t.at)} x2={x(t.at)} y1={y(0)} y2={y(0) + 4} />
              <text x={x(t.at)} y={height - 4} textAnchor="middle">
                {duration(t.value).replace(/\.0+ /, ' ')}
              </text>
            </g>
          ))}
        </g>
      </svg>
      <ScaleChoice of="both axes" />
      {pointer && bin >= 0 && (
        <Float
          x={pointer.x}
          y={pointer.y}
          width={width}
          heading={`${duration(pair.edges_us[bin])} to ${duration(pair.edges_us[bin + 1])}`}
          lines={[
            ['calls of A', percent(100 * (pair.shares[0][bin] ?? 0))],
            ['calls of B', percent(100 * (pair.shares[1][bin] ?? 0))],
          ]}
        />
      )}
    </div>
  );
}
