import { useRef, useState, type PointerEvent } from 'react';
import type { Strip } from '../../api/index.ts';
import { kindVar } from '../../color/index.ts';
import { clock, count, duration } from '../../format/index.ts';
import { useSpan } from '../../route/index.ts';
import { ExportFigure, Float, Kind, TimeAxis } from '../../ui/index.ts';

const height = 72;

/** SVG paths of stacked bars in a box 1000 wide, one per layer. */
export function stack(strip: Strip): { kind: string; path: string }[] {
  const columns = Math.max(0, ...strip.series.map((l) => l.lost_us.length));
  const sums = Array.from({ length: columns }, (_, i) =>
    strip.series.reduce((n, l) => n + (l.lost_us[i] ?? 0), 0),
  );
  const most = Math.max(...sums, 1);
  const base = new Array<number>(columns).fill(0);
  const step = 1000 / Math.max(columns, 1);
  return strip.series.map((layer) => {
    let path = '';
    layer.lost_us.forEach((v, i) => {
      if (v <= 0) return;
      const h = (v / most) * (height - 2);
      const y = height - (base[i] ?? 0);
      path += `M${(i * step).toFixed(1)} ${y.toFixed(2)}v${(-h).toFixed(2)}h${(step * 0.86).toFixed(1)}v${h.toFixed(2)}z`;
      base[i] = (base[i] ?? 0) + h;
    });
    return { kind: layer.kind, path };
  });
}

/** Lost time by kind over the whole run. */
export function KindStrip({ strip }: { strip: Strip }) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<{ column: number; x: number; y: number; width: number }>();
  const { t0, t1 } = useSpan();
  const columns = Math.max(0, ...strip.series.map((l) => l.lost_us.length));
  const span = strip.to_s - strip.from_s;
  const move = (event: PointerEvent) => {
    const r = box.current?.getBoundingClientRect();
    if (!r || r.width === 0 || columns === 0) return;
    const x = event.clientX - r.left;
    const column = Math.min(columns - 1, Math.max(0, Math.floor((x / r.width) * columns)));
    setAt({ column, x, y: event.clientY - r.top, width: r.width });
  };
  const time = (column: number) => strip.from_s + (column / Math.max(columns, 1)) * span;
  const x = (s: number) => Math.min(100, Math.max(0, ((s - strip.from_s) / span) * 100));
  const total = (kind: string) =>
    strip.series.find((l) => l.kind === kind)?.lost_us.reduce((a, b) => a + b, 0) ?? 0;
  return (
    <section className="panel strip" aria-labelledby="strip-title" data-figure>
      <header className="panel-head">
        <h2 id="strip-title">Lost time by kind</h2>
        {(t0 !== undefined || t1 !== undefined) && <span className="tag">whole run</span>}
        <span className="push" />
        <ul className="legend">
          {strip.series.map((l) => (
            <li key={l.kind}>
              <Kind kind={l.kind} /> <span className="muted">{duration(total(l.kind))}</span>
            </li>
          ))}
        </ul>
        <ExportFigure title="Lost time by kind" />
      </header>
      {strip.series.length === 0 ? (
        <p className="heat-words">No time lost to anomalies.</p>
      ) : (
        <div className="strip-body">
          <div
            ref={box}
            className="strip-box"
            onPointerMove={move}
            onPointerLeave={() => setAt(undefined)}
          >
            <svg
              viewBox={`0 0 1000 ${height}`}
              preserveAspectRatio="none"
              aria-hidden="true"
              height={height}
            >
              {stack(strip).map((l) => (
                <path key={l.kind} d={l.path} fill={kindVar(l.kind)} />
              ))}
            </svg>
            {(t0 !== undefined || t1 !== undefined) && (
              <span
                className="brush-chosen"
                style={{
                  left: `${x(t0 ?? strip.from_s)}%`,
                  right: `${100 - x(t1 ?? strip.to_s)}%`,
                }}
              />
            )}
            {at && (
              <Float
                {...at}
                y={0}
                heading={`${clock(time(at.column), span)} to ${clock(time(at.column + 1), span)}`}
                lines={strip.series.map(
                  (l) =>
                    [
                      l.kind,
                      `${duration(l.lost_us[at.column] ?? 0)}, ${count(l.anomalies[at.column] ?? 0)} anomalies`,
                    ] as const,
                )}
              />
            )}
          </div>
          <TimeAxis from={strip.from_s} to={strip.to_s} />
        </div>
      )}
    </section>
  );
}
