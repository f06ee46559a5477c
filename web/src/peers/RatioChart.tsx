import type { RatioWindow } from '../api/index.ts';
import { clock } from '../format/index.ts';
import { ExportFigure, TimeAxis } from '../ui/index.ts';
import './peers.css';

const height = 96;
const least = 1.5; // the greatest ratio of the scale, unless a window has more

/** The ratio of a place to its peers over time as bars; those while it was slow stand out. */
export function RatioChart(props: { windows: readonly RatioWindow[]; label: string }) {
  const { windows, label } = props;
  const from = windows[0]?.from_s ?? 0;
  const to = windows.at(-1)?.to_s ?? 0;
  const span = to - from;
  if (span <= 0) return null;
  const most = Math.max(least, ...windows.map((w) => w.ratio ?? 0));
  const y = (ratio: number) => height - (ratio / most) * (height - 4);
  const x = (s: number) => (100 * (s - from)) / span;
  return (
    <figure className="ratio-chart" data-figure>
      <figcaption>
        {label} <ExportFigure title={label} />
      </figcaption>
      <div className="ratio-chart-box">
        <svg role="img" aria-label={`${label}: ${words(windows)}`} width="100%" height={height}>
          {windows.map((w) => (
            <rect
              key={w.from_s}
              x={`${x(w.from_s)}%`}
              width={`${Math.max(0.1, x(w.to_s) - x(w.from_s) - 0.15)}%`}
              y={w.ratio === null ? 0 : y(w.ratio)}
              height={w.ratio === null ? height : height - y(w.ratio)}
              className={w.ratio === null ? 'incomparable' : w.slow ? 'slow' : 'usual'}
            >
              <title>{`${clock(w.from_s, span)} to ${clock(w.to_s, span)}: ${w.ratio === null ? 'nothing to compare with' : `${w.ratio.toFixed(2)}×`}`}</title>
            </rect>
          ))}
          <line x1="0" x2="100%" y1={y(1)} y2={y(1)} />
          <text x="2" y={y(1) - 3}>
            1× (like peers)
          </text>
          <text x="2" y="10">
            {most.toFixed(1)}×
          </text>
        </svg>
        <TimeAxis from={from} to={to} />
      </div>
    </figure>
  );
}

/** The ratios in words: the mean while slow, and otherwise. */
export function words(windows: readonly RatioWindow[]): string {
  const mean = (slow: boolean) => {
    const all = windows.flatMap((w) => (w.slow === slow && w.ratio !== null ? [w.ratio] : []));
    return all.length === 0
      ? undefined
      : `${(all.reduce((a, b) => a + b, 0) / all.length).toFixed(2)}×`;
  };
  const [slow, rest] = [mean(true), mean(false)];
  return [slow && `${slow} while it was slow`, rest && `${rest} otherwise`]
    .filter(Boolean)
    .join(', ');
}
