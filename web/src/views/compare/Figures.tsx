import type { Comparison, Pair } from '../../api/index.ts';
import { count, duration, percent, short } from '../../format/index.ts';
import { Tile } from '../../ui/index.ts';
import { command, signed } from './pair.ts';

/** The sums of both runs. */
export function Figures({ of: c }: { of: Comparison }) {
  const between = ([a, b]: Pair<number>, text: (v: number) => string) => (
    <>
      <span className="nowrap">{text(a)}</span> <span className="muted">→</span>{' '}
      <span className="nowrap">{text(b)}</span>
    </>
  );
  const growth = ([a, b]: Pair<number>) => {
    if (a <= 0 || a === b) return '';
    if (b >= 10 * a) return `${short(b / a)} times as much`;
    return `${b >= a ? '+' : '−'}${percent((100 * Math.abs(b - a)) / a)}`;
  };
  const lostGrew = c.lost_percent[1] - c.lost_percent[0];
  const ask = command(c.a, c.b);
  return (
    <div className="compare-tiles">
      <Tile
        label="Lost to anomalies"
        value={between(c.lost_us, duration)}
        note={signed(c.lost_us[1] - c.lost_us[0])}
        explain={{
          formula: 'How much longer than usual anomalous executions took, A → B.',
          command: ask,
        }}
      />
      <Tile
        label="Share of all time"
        value={between(c.lost_percent, percent)}
        note={`${lostGrew >= 0 ? '+' : '−'}${percent(Math.abs(lostGrew)).replace(' %', '')} points`}
        explain={{
          formula: 'Lost time as a part of the time of all calls, A → B.',
          from: [
            ['A', `${duration(c.lost_us[0])} of ${duration(c.exclusive_us[0])}`],
            ['B', `${duration(c.lost_us[1])} of ${duration(c.exclusive_us[1])}`],
          ],
          command: ask,
        }}
      />
      <Tile
        label="Anomalies"
        value={between(c.anomalies, count)}
        note={growth(c.anomalies)}
        explain={{ formula: 'Anomalies that were not withdrawn, A → B.', command: ask }}
      />
      <Tile
        label="Time of all calls"
        value={between(c.exclusive_us, duration)}
        note={growth(c.exclusive_us)}
        explain={{
          formula:
            'The time of all calls in the functions themselves, over all ranks and threads, A → B. Known when a run has ended.',
          command: command(c.a, c.b, ' --show time'),
        }}
      />
      <Tile
        label="Calls"
        value={between(c.calls, count)}
        note={growth(c.calls)}
        explain={{
          formula: 'All calls of all functions, A → B: whether both did the same work.',
          command: command(c.a, c.b, ' --show time'),
        }}
      />
    </div>
  );
}
