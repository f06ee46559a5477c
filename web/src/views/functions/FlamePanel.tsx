import { useMemo, type ReactNode } from 'react';
import { useLive, useRunQuery, type Flame, type FunctionRow } from '../../api/index.ts';
import { groups, groupVar, groupWords } from '../../color/index.ts';
import {
  cellsOf,
  FlameGraph,
  search,
  share,
  sums,
  type Cell,
  type Sum,
} from '../../flame/index.ts';
import { count, duration, percent, plural } from '../../format/index.ts';
import { text, useHref, useParam, useRoute } from '../../route/index.ts';
import {
  Empty,
  ExportFigure,
  Failure,
  FunctionName,
  FunctionPlace,
  Notice,
  Table,
  Waiting,
  type Column,
} from '../../ui/index.ts';

const noText = text('');

interface PanelProps {
  metric: 'time' | 'lost';
  choices: ReactNode;
  /** Rows of the function table, to look up details. */
  rows: readonly FunctionRow[];
  onSelect: (id: string) => void;
}

/** A flame graph of time or lost time, with search and a table. */
export function FlamePanel(props: PanelProps) {
  const { query } = useRoute();
  const { overview } = useLive();
  const href = useHref();
  const [filter, setFilter] = useParam('q', noText);
  const result = useRunQuery<Flame>(
    'flame',
    { metric: props.metric, program: query.program },
    { every: 10_000, keep: true },
  );
  const flame = result.data;
  const empty = flame && flame.root.total_us <= 0;
  return (
    <>
      <div className="tools">
        {props.choices}
        <input
          className="field"
          type="search"
          placeholder="Highlight…"
          aria-label="Highlight functions"
          value={filter}
          onChange={(e) => setFilter(e.target.value)}
        />
      </div>
      {flame?.partial !== undefined && flame.partial !== '' && empty !== true && (
        <Notice level="unknown">{flame.partial}</Notice>
      )}
      {!flame && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!flame && !result.problem && <Waiting label="loading the flame graph" lines={8} />}
      {empty === true &&
        (props.metric === 'lost' ? (
          <Empty title="No time lost to anomalies." />
        ) : (
          <Empty
            title={`Call times are not stored ${overview?.live === true ? 'yet' : 'with this run'}.`}
          >
            {overview?.live === true && (
              <p>
                They are stored when the run ends.{' '}
                <a href={href({ query: { mode: 'lost' } })}>Where time was lost</a> is available
                now.
              </p>
            )}
          </Empty>
        ))}
      {flame && empty !== true && <Graph {...props} flame={flame} filter={filter} />}
    </>
  );
}

function Graph(props: PanelProps & { flame: Flame; filter: string }) {
  const { flame, metric, filter } = props;
  const [at, setAt] = useParam('at', noText);
  const [on, setOn] = useParam('on', noText);
  const cells = useMemo(() => cellsOf(flame.root), [flame]);
  const root = cells[0];
  const byKey = useMemo(() => new Map(cells.map((c) => [c.key, c])), [cells]);
  const focus = byKey.get(at) ?? root;
  const chosen = byKey.get(on);
  const hits = useMemo(
    () => (filter.trim() === '' ? undefined : search(cells, filter)),
    [cells, filter],
  );
  if (!root || !focus) return null;
  const lost = metric === 'lost';
  const what = lost ? 'lost' : 'time';
  const counts = lost ? 'anomalies' : 'calls';
  return (
    <div className="flame-body" data-figure>
      <div className="flame-line">
        {focus.parent ? (
          <Crumbs focus={focus} onFocus={(c) => setAt(c.parent ? c.key : '')} />
        ) : (
          <span className="muted" data-no-export>
            Click a function to zoom in.
          </span>
        )}
        <span className="push" />
        {hits && (
          <span role="status">
            {plural(hits.matches.size, 'place')} with “{filter}”: {duration(hits.time)},{' '}
            {share(hits.time, root)}
          </span>
        )}
        <Legend cells={cells} />
        <ExportFigure title={lost ? 'Flame graph of lost time' : 'Flame graph of time'} />
      </div>
      <FlameGraph
        cells={cells}
        focus={focus}
        onFocus={(c) => setAt(c.parent ? c.key : '')}
        chosen={chosen}
        onChoose={(c) => setOn(c?.key ?? '')}
        matches={hits?.matches}
        what={what}
        counts={counts}
        label={`Flame graph of ${lost ? 'lost time' : 'time'}, outermost function on top. Arrows move, Enter zooms in, Escape zooms out. A table below lists the functions with the most time.`}
      />
      <Chosen cell={chosen ?? focus} root={root} lost={lost} {...props} />
      <TopTable cells={cells} root={root} lost={lost} rows={props.rows} onSelect={props.onSelect} />
    </div>
  );
}

/** The callers of the zoomed function, to zoom out to. */
function Crumbs({ focus, onFocus }: { focus: Cell; onFocus: (cell: Cell) => void }) {
  const way: Cell[] = [];
  for (let c: Cell | undefined = focus; c; c = c.parent) way.unshift(c);
  const shown = way.length > 5 ? [...way.slice(0, 1), ...way.slice(-3)] : way;
  return (
    <nav className="flame-crumbs" aria-label="Zoom path">
      {shown.map((c, i) => (
        <span key={c.key}>
          {i > 0 && (
            <span className="muted"> {i === 1 && shown.length < way.length ? '› … ›' : '›'} </span>
          )}
          {c === focus ? (
            <strong>
              <FunctionName name={c.node.function} most={32} />
            </strong>
          ) : (
            <button type="button" className="link" onClick={() => onFocus(c)}>
              <FunctionName name={c.node.function} most={24} />
            </button>
          )}
        </span>
      ))}
    </nav>
  );
}

function Legend({ cells }: { cells: readonly Cell[] }) {
  const there = groups.filter((g) => cells.some((c) => c.parent && c.node.group === g));
  return (
    <ul className="flame-legend" aria-label="Color legend">
      {there.map((g) => (
        <li key={g}>
          <span className="dot" style={{ background: groupVar(g) }} /> {groupWords[g]}
        </li>
      ))}
    </ul>
  );
}

/** Finds the table row of a function in the tree; with several programs, the one that lost most. */
export function rowOf(rows: readonly FunctionRow[], name: string): FunctionRow | undefined {
  return rows.find((r) => r.function === name);
}

function Chosen(props: PanelProps & { cell: Cell; root: Cell; lost: boolean }) {
  const { cell, root, lost } = props;
  const { node } = cell;
  const row = rowOf(props.rows, node.function);
  return (
    <div className="flame-chosen" data-no-export>
      <strong>
        <FunctionPlace name={node.function} most={70} />
      </strong>
      <span>
        own time {duration(node.self_us)} <span className="muted">{share(node.self_us, root)}</span>
      </span>
      <span>
        inclusive {duration(node.total_us)}{' '}
        <span className="muted">{share(node.total_us, root)}</span>
      </span>
      {node.calls > 0 && (
        <span>
          {lost ? plural(node.calls, 'anomaly', 'anomalies') : plural(node.calls, 'call')}
        </span>
      )}
      <span className="push" />
      {row && (
        <button type="button" className="button" onClick={() => props.onSelect(row.id)}>
          Details
        </button>
      )}
    </div>
  );
}

const mostTop = 20;

/** The functions with the most own time as a table, for screen readers. */
function TopTable(props: {
  cells: readonly Cell[];
  root: Cell;
  lost: boolean;
  rows: readonly FunctionRow[];
  onSelect: (id: string) => void;
}) {
  const { cells, root, lost } = props;
  const all = useMemo(() => sums(cells), [cells]);
  const columns = useMemo((): Column<Sum>[] => {
    const whole = Math.max(root.node.total_us, 1);
    return [
      {
        id: 'function',
        header: 'Function',
        grow: true,
        value: (s) => s.name,
        cell: (s) => <FunctionName name={s.name} most={70} />,
      },
      {
        id: 'self',
        header: lost ? 'Own lost' : 'Own time',
        align: 'right',
        value: (s) => s.self,
        cell: (s) => duration(s.self),
      },
      {
        id: 'selfshare',
        header: 'of all',
        align: 'right',
        value: (s) => (100 * s.self) / whole,
        cell: (s) => percent((100 * s.self) / whole),
      },
      {
        id: 'total',
        header: 'Inclusive',
        align: 'right',
        value: (s) => s.total,
        cell: (s) => duration(s.total),
      },
      {
        id: 'calls',
        header: lost ? 'Anomalies' : 'Calls',
        align: 'right',
        value: (s) => s.calls,
        cell: (s) => count(s.calls),
      },
    ];
  }, [lost, root]);
  return (
    <details className="flame-more">
      <summary>The {Math.min(mostTop, all.length)} top functions as a table</summary>
      <div className="flame-table">
        <Table<Sum>
          name={lost ? 'flame-lost' : 'flame-time'}
          label={lost ? 'Functions by lost time' : 'Functions by time'}
          columns={columns}
          rows={all.slice(0, mostTop)}
          rowKey={(s) => s.name}
          onOpen={(s) => {
            const row = rowOf(props.rows, s.name);
            if (row) props.onSelect(row.id);
          }}
        />
      </div>
    </details>
  );
}
