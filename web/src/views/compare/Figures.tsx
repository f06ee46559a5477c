import type { Comparison, Pair } from '../../api/index.ts';
import { count, duration, names, percent, short } from '../../format/index.ts';
import { Tile } from '../../ui/index.ts';
import { command, signed } from './pair.ts';

/** A share of 1 in whole percent. */
const whole = (n: number | null) => (n === null ? '–' : `${Math.round(100 * n)} %`);

/** Slow peers that are new or gone. */
function slowNote(c: Comparison): string {
  const named = (change: string) => c.slow.filter((s) => s.change === change).map((s) => s.place);
  return [['new: ', named('new')] as const, ['gone: ', named('gone')] as const]
    .filter(([, places]) => places.length > 0)
    .map(([word, places]) => word + names(places))
    .join('; ');
}

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
      {c.efficiency.map((e) => {
        const [a, b] = e.parallel;
        if (a === null || b === null) return null;
        const parts = (name: string, [x, y]: Pair<number | null>): [string, string] => [
          name,
          `${whole(x)} → ${whole(y)}`,
        ];
        return (
          <Tile
            key={e.program}
            label={`Parallel efficiency${c.efficiency.length > 1 ? ` of program ${e.program}` : ''}`}
            value={between([a, b], whole)}
            note={slowNote(c)}
            explain={{
              formula: 'Share of the time of all ranks that is useful, A → B.',
              from: [
                parts('load balance', e.load_balance),
                parts('communication efficiency', e.communication),
                ...c.slow
                  .filter((s) => s.program === e.program)
                  .slice(0, 8)
                  .map((s): [string, string] => [`slow peer, ${s.change}`, s.place]),
              ],
              command: ask,
            }}
          />
        );
      })}
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
