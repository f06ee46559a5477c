import type { Comparison, Pair } from '../../api/index.ts';
import { count, duration, percent, short } from '../../format/index.ts';
import { Tile } from '../../ui/index.ts';
import { command, signed } from './pair.ts';

/** The totals of both runs. */
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
          formula: 'Time of anomalies beyond the usual, A → B.',
          command: ask,
        }}
      />
      <Tile
        label="Lost share"
        value={between(c.lost_percent, percent)}
        note={`${lostGrew >= 0 ? '+' : '−'}${percent(Math.abs(lostGrew)).replace(' %', '')} points`}
        explain={{
          formula: 'Lost time in percent of the time of all calls, A → B.',
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
        explain={{ formula: 'Anomalies without withdrawn ones, A → B.', command: ask }}
      />
      <Tile
        label="Time of all calls"
        value={between(c.exclusive_us, duration)}
        note={growth(c.exclusive_us)}
        explain={{
          formula:
            'Own time of all calls on all ranks and threads, A → B. Available when a run ends.',
          command: command(c.a, c.b, ' --show time'),
        }}
      />
      <Tile
        label="Calls"
        value={between(c.calls, count)}
        note={growth(c.calls)}
        explain={{
          formula: 'Calls of all functions, A → B: equal if both runs did the same work.',
          command: command(c.a, c.b, ' --show time'),
        }}
      />
    </div>
  );
}
