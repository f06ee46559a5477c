import { useLive } from '../api/index.ts';
import { clock, wall } from '../format/index.ts';
import { timeTicks } from './ticks.ts';
import { useWidth } from './width.ts';
import './ui.css';

const labelWidth = 76; // pixels

/** A time axis as wide as the chart above it. */
export function TimeAxis(props: { from: number; to: number; most?: number }) {
  const { overview } = useLive();
  const [measure, width] = useWidth();
  const span = props.to - props.from;
  const room = width === 0 ? Infinity : Math.max(1, Math.floor(width / labelWidth));
  return (
    <div className="time-axis" aria-hidden="true" ref={measure}>
      {timeTicks(props.from, props.to - span * 0.05, Math.min(props.most ?? 8, room)).map((s) => (
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
