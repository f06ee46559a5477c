import { useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { useLive, type Strip } from '../api/index.ts';
import { clock } from '../format/index.ts';
import { go, useSpan } from '../route/index.ts';

/** Lost time by column, all kinds together; anomaly counts if lost time is unknown. */
export function totals(strip: Strip): number[] {
  const most = Math.max(0, ...strip.series.map((l) => l.lost_us.length));
  const sum = (of: 'lost_us' | 'anomalies') =>
    Array.from({ length: most }, (_, i) => strip.series.reduce((n, l) => n + (l[of][i] ?? 0), 0));
  const lost = sum('lost_us');
  return lost.some((v) => v > 0) ? lost : sum('anomalies');
}

const height = 28;

/** Bars of lost time in a box 1000 wide. The square-root scale keeps small bars visible. */
function bars(values: readonly number[]): string {
  const most = Math.max(...values, 1);
  const step = 1000 / Math.max(values.length, 1);
  return values
    .map((v, i) => {
      if (v <= 0) return '';
      const h = Math.max(2, Math.sqrt(v / most) * (height - 2));
      return `M${(i * step).toFixed(1)} ${height}v${(-h).toFixed(1)}h${step.toFixed(1)}v${h.toFixed(1)}z`;
    })
    .join('');
}

/** Rounds a time to pixel resolution. */
function tidy(s: number, length: number): number {
  const digits = length < 10 ? 3 : length < 600 ? 2 : 0;
  return Number(s.toFixed(digits));
}

/** Lost time over the run, in the top bar. Dragging selects the time range of all views. */
export function Brush() {
  const { overview } = useLive();
  const { t0, t1 } = useSpan();
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number }>();
  const strip = overview?.strip;
  const from = strip?.from_s ?? 0;
  const to = strip && strip.to_s > from ? strip.to_s : from + Math.max(overview?.length_s ?? 0, 1);
  const length = to - from;
  const timeAt = (event: PointerEvent) => {
    const r = box.current?.getBoundingClientRect();
    const part = r && r.width > 0 ? (event.clientX - r.left) / r.width : 0;
    return from + Math.min(1, Math.max(0, part)) * length;
  };
  const end = () => {
    if (!drag) return;
    const [a, b] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
    setDrag(undefined);
    if (b - a < length / 200) go({ query: { t0: '', t1: '' } });
    else go({ query: { t0: tidy(a, length), t1: tidy(b, length) } });
  };
  const shift = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -0.05, ArrowRight: 0.05 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const [a, b] = [t0 ?? from, t1 ?? to];
    const by = step * length;
    if (event.shiftKey)
      go({
        query: {
          t0: tidy(a, length),
          t1: tidy(Math.min(to, Math.max(a + length / 50, b + by)), length),
        },
      });
    else if (b - a >= length)
      go({ query: { t0: tidy(a, length), t1: tidy(a + length / 4, length) } });
    else {
      const moved = Math.min(to - (b - a), Math.max(from, a + by));
      go({ query: { t0: tidy(moved, length), t1: tidy(moved + b - a, length) } });
    }
  };
  const chosen =
    drag ?? (t0 === undefined && t1 === undefined ? undefined : { from: t0 ?? from, to: t1 ?? to });
  const x = (s: number) => Math.min(100, Math.max(0, ((s - from) / length) * 100));
  const words = chosen
    ? `${clock(Math.min(chosen.from, chosen.to), length)} to ${clock(Math.max(chosen.from, chosen.to), length)}`
    : 'the whole run';
  return (
    <div
      ref={box}
      className="brush"
      role="slider"
      tabIndex={0}
      aria-label="Time range"
      aria-valuemin={from}
      aria-valuemax={to}
      aria-valuenow={t0 ?? from}
      aria-valuetext={words}
      title="Lost time over the run. Drag to select a time range, click to reset; ← → move it, with Shift its end"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        const s = timeAt(event);
        setDrag({ from: s, to: s });
      }}
      onPointerMove={(event) => {
        if (drag) setDrag({ from: drag.from, to: timeAt(event) });
      }}
      onPointerUp={end}
      onPointerCancel={() => setDrag(undefined)}
      onKeyDown={shift}
    >
      <svg viewBox={`0 0 1000 ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {strip && <path d={bars(totals(strip))} />}
      </svg>
      {chosen && (
        <span
          className="brush-chosen"
          style={{
            left: `${x(Math.min(chosen.from, chosen.to))}%`,
            right: `${100 - x(Math.max(chosen.from, chosen.to))}%`,
          }}
        />
      )}
    </div>
  );
}
