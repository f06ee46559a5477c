import { useLive } from '../api/index.ts';
import { clock, wall } from '../format/index.ts';
import { timeTicks } from './ticks.ts';
import './ui.css';

/** A time axis as wide as the chart above it. */
export function TimeAxis(props: { from: number; to: number; most?: number }) {
  const { overview } = useLive();
  const span = props.to - props.from;
  return (
    <div className="time-axis" aria-hidden="true">
      {timeTicks(props.from, props.to - span * 0.05, props.most ?? 8).map((s) => (
        <span
          key={s}
          style={{ left: `${((s - props.from) / span) * 100}%` }}
          title={wall(overview?.began, s)}
        >
          {clock(s, span)}
        </span>
      ))}
    </div>
  );
}
