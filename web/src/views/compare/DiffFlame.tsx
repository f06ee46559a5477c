import { useCallback, useMemo, type ReactNode } from 'react';
import { useQuery, withParams, type Comparison, type FlamePair } from '../../api/index.ts';
import { token } from '../../color/index.ts';
import { cellsOf, FlameGraph, search, type Cell } from '../../flame/index.ts';
import { count, duration, percent, plural } from '../../format/index.ts';
import { choice, text, useParam, useRoute } from '../../route/index.ts';
import { useTheme } from '../../theme/index.ts';
import { Empty, ExportFigure, Failure, Notice, Segmented, Waiting } from '../../ui/index.ts';
import { mix, oneSide, relative, signed } from './pair.ts';

const noText = text('');
const metricWord = choice('time', 'lost');
const widthWord = choice('b', 'a');
const metrics = [
  ['time', 'All time', 'The time of all calls'],
  ['lost', 'Lost time', 'Time lost to anomalies'],
] as const;
const widths = [
  ['a', 'Width of A', 'Width shows the time in A'],
  ['b', 'Width of B', 'Width shows the time in B'],
] as const;

/** The call paths of both runs in one flame graph, colored by change. */
export function DiffFlame({ of: c, choices }: { of: Comparison; choices: ReactNode }) {
  const { query } = useRoute();
  const [metric, setMetric] = useParam('metric', metricWord);
  const [width, setWidth] = useParam('width', widthWord);
  const [filter, setFilter] = useParam('q', noText);
  const result = useQuery<FlamePair>(
    withParams('api/v1/compare/flame', {
      a: c.a.id,
      b: c.b.id,
      metric,
      program: query.program,
    }),
    { every: 10_000, keep: true },
  );
  const flame = result.data;
  const empty = flame && Math.max(...flame.root.total_us) <= 0;
  return (
    <section className="panel filled" aria-label="Flame graph of both runs" data-figure>
      <div className="tools">
        {choices}
        <Segmented small label="Metric" choices={metrics} chosen={metric} onChoose={setMetric} />
        <Segmented small label="Width" choices={widths} chosen={width} onChoose={setWidth} />
        <input
          className="field"
          type="search"
          placeholder="Highlight…"
          aria-label="Highlight functions"
          value={filter}
          onChange={(e) => setFilter(e.target.value)}
        />
        <span className="push" />
        <Legend />
        <ExportFigure title={`Flame graph of ${c.a.name} (A) and ${c.b.name} (B)`} />
      </div>
      {flame?.partial !== undefined && flame.partial !== '' && (
        <Notice level="unknown">{flame.partial}</Notice>
      )}
      {!flame && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!flame && !result.problem && <Waiting label="loading the flame graph" lines={8} />}
      {flame && empty === true && (
        <Empty
          title={
            flame.metric === 'lost'
              ? 'Neither run lost time to anomalies.'
              : 'Neither run has stored times of call paths.'
          }
        />
      )}
      {flame && empty !== true && (
        <Graph flame={flame} side={width === 'a' ? 0 : 1} filter={filter} />
      )}
    </section>
  );
}

function Legend() {
  return (
    <span className="compare-scale">
      less in B <span className="compare-ramp" aria-hidden="true" /> more in B
    </span>
  );
}

function Graph({ flame, side, filter }: { flame: FlamePair; side: 0 | 1; filter: string }) {
  const theme = useTheme();
  const [at, setAt] = useParam('at', noText);
  const [on, setOn] = useParam('on', noText);
  const { root, both, hidden } = useMemo(() => oneSide(flame.root, side), [flame, side]);
  const cells = useMemo(() => cellsOf(root), [root]);
  const byKey = useMemo(() => new Map(cells.map((c) => [c.key, c])), [cells]);
  const fill = useCallback(
    (cell: Cell) => {
      const node = both.get(cell.node);
      const r = node ? relative(node.total_us) : 0;
      return mix(token('diff-same'), token(r > 0 ? 'diff-more' : 'diff-less'), Math.abs(r));
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- tokens depend on the theme
    [both, theme],
  );
  const words = useCallback(
    (cell: Cell): readonly (readonly [string, string])[] => {
      const n = both.get(cell.node);
      if (!n) return [];
      const [a, b] = n.total_us;
      const change = a > 0 ? `, ${b >= a ? '+' : '−'}${percent((100 * Math.abs(b - a)) / a)}` : '';
      return [
        ['A, inclusive', duration(a)],
        ['B, inclusive', duration(b)],
        ['change', `${signed(b - a)}${change}`],
        ['itself', `${duration(n.self_us[0])} → ${duration(n.self_us[1])}`],
        [
          flame.metric === 'lost' ? 'anomalies' : 'calls',
          `${count(n.calls[0])} → ${count(n.calls[1])}`,
        ],
      ];
    },
    [both, flame.metric],
  );
  const matches = useMemo(
    () => (filter.trim() === '' ? undefined : search(cells, filter).matches),
    [cells, filter],
  );
  const top = cells[0];
  const focus = byKey.get(at) ?? top;
  if (!top || !focus) return null;
  const name = side === 0 ? 'A' : 'B';
  const chosen = byKey.get(on);
  return (
    <div className="compare-flame">
      {root.total_us <= 0 ? (
        <Empty title={`${name} has no such time: select the width of the other run.`} />
      ) : (
        <FlameGraph
          cells={cells}
          focus={focus}
          onFocus={(c) => setAt(c.parent ? c.key : '')}
          chosen={chosen}
          onChoose={(c) => setOn(c?.key ?? '')}
          matches={matches}
          what="time"
          counts="calls"
          fill={fill}
          words={words}
          label={`Flame graph with the width of the ${flame.metric === 'lost' ? 'lost time' : 'time'} in ${name}, colored by the change from A to B. Arrows move, Enter zooms in, Escape zooms out. “All time” and “Lost time” above list the changes as tables.`}
        />
      )}
      <p className="muted compare-flame-note">
        {hidden > 0 &&
          `${plural(hidden, 'call path')} only in ${side === 0 ? 'B' : 'A'}: select the width of ${side === 0 ? 'B' : 'A'} to see ${hidden === 1 ? 'it' : 'them'}. `}
        Stronger colors are larger changes; the strongest are new or gone.
      </p>
    </div>
  );
}
