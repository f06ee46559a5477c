import { useMemo, useState, type PointerEvent } from 'react';
import type { GPUTime } from '../../api/index.ts';
import { duration, durationTick } from '../../format/index.ts';
import { Float, useWidth } from '../../ui/index.ts';
import { labeled, parts, partVar, shareText, stack, widths } from './parts.ts';

const height = 168;

/**
 * The time of ranks or steps as stacked bars. The table beside it has the same numbers and works without a mouse.
 */
export function StackedBars(props: {
  label: string;
  rows: readonly GPUTime[];
  /** Bars are as long as their time; otherwise all are equally long. */
  absolute: boolean;
  /** The number below a bar. */
  tick: (t: GPUTime) => string;
  /** The bar in words. */
  name: (t: GPUTime) => string;
  selected?: (t: GPUTime) => boolean;
  onSelect?: (t: GPUTime) => void;
}) {
  const { rows, absolute } = props;
  const [box, width] = useWidth();
  const [at, setAt] = useState<{ index: number; x: number; y: number; width: number }>();
  const most = useMemo(
    () => (absolute ? Math.max(1e-9, ...rows.map((t) => t.total_us)) : undefined),
    [rows, absolute],
  );
  const layers = useMemo(() => stack(rows, width, height, most), [rows, width, most]);
  const { step, bar } = widths(rows.length, width);
  const find = (event: PointerEvent) => {
    const r = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - r.left;
    const index = Math.floor(x / Math.max(step, 1e-9));
    return rows[index] === undefined
      ? undefined
      : { index, x, y: event.clientY - r.top, width: r.width };
  };
  const here = at === undefined ? undefined : rows[at.index];
  const chosen = props.selected === undefined ? -1 : rows.findIndex(props.selected);
  return (
    <div className="gpu-chart">
      <div className="gpu-scale" aria-hidden="true">
        <span>{most === undefined ? '100 %' : durationTick(most)}</span>
        <span>{most === undefined ? '50 %' : durationTick(most / 2)}</span>
        <span>0</span>
      </div>
      <div className="gpu-plot">
        <div
          ref={box}
          role="img"
          aria-label={props.label}
          className={props.onSelect ? 'gpu-bars choosable' : 'gpu-bars'}
          style={{ height }}
          onPointerMove={(e) => setAt(find(e))}
          onPointerLeave={() => setAt(undefined)}
          onPointerUp={(e) => {
            const t = rows[find(e)?.index ?? -1];
            if (t) props.onSelect?.(t);
          }}
        >
          <svg width={width} height={height} aria-hidden="true">
            {layers.map((l) => (
              <path key={l.id} d={l.path} fill={partVar(l.id)} />
            ))}
          </svg>
          {[chosen, at?.index ?? -1].map(
            (i, k) =>
              i >= 0 && (
                <span
                  key={k}
                  className={k === 0 ? 'gpu-mark chosen' : 'gpu-mark'}
                  style={{ left: i * step + (step - bar) / 2 - 1, width: bar + 2 }}
                />
              ),
          )}
          {at && here && (
            <Float
              {...at}
              heading={`${props.name(here)}: ${duration(here.total_us)}`}
              lines={[
                ...parts.map(
                  (p) =>
                    [
                      p.name,
                      `${duration(p.time(here))}, ${shareText(p.time(here), here.total_us)}`,
                    ] as const,
                ),
                [
                  'communication hidden',
                  shareText(here.overlap_us, here.communication_us),
                ] as const,
              ]}
            />
          )}
        </div>
        <div className="gpu-ticks" aria-hidden="true">
          {labeled(rows.length, step, 40).map((i) => {
            const t = rows[i];
            return (
              t && (
                <span key={i} style={{ left: (i + 0.5) * step }}>
                  {props.tick(t)}
                </span>
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** A row of a table as a bar of shares. */
export function ShareBar({ time }: { time: GPUTime }) {
  const words = parts.map((p) => `${p.name} ${shareText(p.time(time), time.total_us)}`).join(', ');
  return (
    <span className="share-bar" title={words}>
      {parts.map((p) => (
        <span
          key={p.id}
          style={{
            width: `${(100 * p.time(time)) / Math.max(time.total_us, 1e-9)}%`,
            background: partVar(p.id),
          }}
        />
      ))}
    </span>
  );
}

/** The colors of the parts. */
export function PartLegend() {
  return (
    <ul className="gpu-legend">
      {parts.map((p) => (
        <li key={p.id} title={p.title}>
          <span className="swatch" style={{ background: partVar(p.id) }} /> {p.name}
        </li>
      ))}
    </ul>
  );
}
