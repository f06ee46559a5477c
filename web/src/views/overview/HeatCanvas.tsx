import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import { useLive, type Heatmap } from '../../api/index.ts';
import { ramp, token } from '../../color/index.ts';
import { writeSelection } from '../../explain/index.ts';
import { clock, count, duration, plural } from '../../format/index.ts';
import { go } from '../../route/index.ts';
import { useTheme } from '../../theme/index.ts';
import { Float, TimeAxis, useAxisScale } from '../../ui/index.ts';
import { hostGroups, labeled, noData, pixels, rgb, rowHeight, rowName, rowRanks } from './heat.ts';

interface Cell {
  row: number;
  column: number;
}

const height = 360; // approximate pixels of all rows together

/** Indexes the cell values. */
function useValues(map: Heatmap): Map<number, number> {
  return useMemo(() => new Map(map.cells.map((c) => [c.r * map.columns + c.c, c.v])), [map]);
}

/**
 * The heatmap canvas: one pixel per cell, which the browser scales up, so that an update costs one small image. A click on a cell shows its findings. Dragging selects a time range or, with Shift or while boxing, a box of ranks and time to explain. Arrows move a cursor.
 */
export function HeatCanvas(props: {
  map: Heatmap;
  warming: boolean;
  boxing: boolean;
  onBoxed: () => void;
}) {
  const { map, warming, boxing } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const { overview } = useLive();
  const [cursor, setCursor] = useState<Cell & { x: number; y: number; width: number }>();
  const [drag, setDrag] = useState<{ from: Cell; to: Cell; box: boolean }>();
  const values = useValues(map);
  const [scale] = useAxisScale();
  const perRow = rowHeight(map.rows.length, height);
  const total = perRow * map.rows.length;
  const programs = (overview?.programs.length ?? 0) > 1;
  const span = map.to_s - map.from_s;
  useEffect(() => {
    const element = canvas.current;
    const paper = element?.getContext('2d');
    if (!element || !paper || map.columns < 1) return;
    element.width = map.columns;
    element.height = map.rows.length;
    const data = pixels(
      map,
      ramp(theme),
      rgb(token('empty-cell')),
      rgb(token('silent-cell')),
      scale,
    );
    paper.putImageData(new ImageData(data, map.columns, map.rows.length), 0, 0);
  }, [map, theme, scale]);

  const cellAt = (event: PointerEvent) => {
    const r = box.current?.getBoundingClientRect();
    if (!r || r.width === 0) return undefined;
    const clamp = (n: number, most: number) => Math.min(most, Math.max(0, n));
    const x = clamp(event.clientX - r.left, r.width - 1);
    const y = clamp(event.clientY - r.top, total - 1);
    return {
      row: Math.floor(y / perRow),
      column: Math.floor((x / r.width) * map.columns),
      x,
      y,
      width: r.width,
    };
  };
  const time = (column: number) => map.from_s + (column / map.columns) * span;
  // Times in the address, rounded outward to a fraction of a column, so that a range includes its cells.
  const digits = Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(span / map.columns))));
  const tidy = (column: number, round: (n: number) => number) =>
    Number((round(time(column) * 10 ** digits) / 10 ** digits).toFixed(digits));
  const range = (first: number, last: number) => ({
    t0: tidy(first, Math.floor),
    t1: tidy(last + 1, Math.ceil),
  });
  const openCell = (cell: Cell) => {
    const row = map.rows[cell.row];
    if (!row) return;
    // A cell with anomalies leads to their findings, also to minor ones; another to all findings of its rank.
    const some = values.has(cell.row * map.columns + cell.column);
    const when = some ? { ...range(cell.column, cell.column), minor: 1 } : {};
    const which = programs ? { program: row.program } : {};
    go({ view: 'findings', query: { rank: rowRanks(row), ...when, ...which } });
  };
  const explain = (from: Cell, to: Cell) => {
    const [r0, r1] = [Math.min(from.row, to.row), Math.max(from.row, to.row)];
    const [c0, c1] = [Math.min(from.column, to.column), Math.max(from.column, to.column)];
    const rows = map.rows.slice(r0, r1 + 1);
    const one = new Set(rows.map((r) => r.program)).size === 1;
    const selection = {
      rank: rows.length === map.rows.length ? '' : rows.map(rowRanks).join(','),
      program: programs && one ? String(rows[0]?.program ?? '') : '',
      from: String(range(c0, c1).t0),
      to: String(range(c0, c1).t1),
    };
    go({ query: { explain: writeSelection(selection) } });
  };
  const up = (event: PointerEvent) => {
    if (!drag) return;
    setDrag(undefined);
    const [a, b] = [drag.from.column, drag.to.column].sort((x, y) => x - y) as [number, number];
    const cell = cellAt(event);
    if (drag.box) {
      props.onBoxed();
      explain(drag.from, drag.to);
    } else if (b - a >= 2) go({ query: range(a, b) });
    else if (cell) openCell(cell);
  };
  const keys = (event: KeyboardEvent) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[
      event.key
    ];
    const at = cursor ?? { row: 0, column: -1 };
    if (event.key === 'Enter' && cursor) openCell(cursor);
    else if (event.key === 'e' && cursor) explain(cursor, cursor);
    else if (event.key === 'Escape' && cursor) setCursor(undefined);
    else if (move) {
      const width = box.current?.clientWidth ?? 0;
      const row = Math.min(map.rows.length - 1, Math.max(0, at.row + (move[0] ?? 0)));
      const column = Math.min(map.columns - 1, Math.max(0, at.column + (move[1] ?? 0)));
      setCursor({
        row,
        column,
        x: ((column + 0.5) / map.columns) * width,
        y: (row + 0.5) * perRow,
        width,
      });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const row = cursor ? map.rows[cursor.row] : undefined;
  const value = cursor ? (values.get(cursor.row * map.columns + cursor.column) ?? 0) : 0;
  const words =
    cursor && row
      ? {
          heading: `${rowName(row, programs)}${row.host === '' ? '' : ` · ${row.host}`}`,
          lines: [
            [
              map.metric !== 'anomalies' ? 'lost here' : 'anomalies here',
              map.metric !== 'anomalies' ? duration(value) : count(value),
            ],
            [
              'time',
              `${clock(time(cursor.column), span)} to ${clock(time(cursor.column + 1), span)}`,
            ],
            [
              'row total',
              `${duration(row.lost_us)}, ${plural(row.anomalies, 'anomaly', 'anomalies')}`,
            ],
            ...(noData(map, cursor.row, cursor.column) ? [['state', 'no data'] as const] : []),
          ] as const,
        }
      : undefined;
  return (
    <div className="heat-grid">
      <HostLabels map={map} perRow={perRow} programs={programs} />
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={box}
        className={`heat-box ${warming ? 'warming' : ''} ${boxing ? 'boxing' : ''}`}
        style={{ height: total }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
        tabIndex={0}
        aria-label={`Heatmap of ${map.rows.length} rows of ranks over time. Arrows move, Enter shows the findings of a cell, e explains it. The worst rows are listed below.`}
        onPointerDown={(event) => {
          const cell = cellAt(event);
          if (!cell || event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: cell, to: cell, box: boxing || event.shiftKey });
        }}
        onPointerMove={(event) => {
          const cell = cellAt(event);
          setCursor(cell);
          if (drag && cell) setDrag({ ...drag, to: cell });
        }}
        onPointerLeave={() => setCursor(undefined)}
        onPointerUp={up}
        onPointerCancel={() => setDrag(undefined)}
        onKeyDown={keys}
        onBlur={() => setCursor(undefined)}
      >
        <canvas ref={canvas} style={{ height: total }} />
        {cursor && (
          <>
            <span
              className="heat-row"
              style={{ top: cursor.row * perRow, height: Math.max(perRow, 2) }}
            />
            <span className="heat-column" style={{ left: cursor.x }} />
          </>
        )}
        {drag && (drag.box || Math.abs(drag.to.column - drag.from.column) >= 2) && (
          <span
            className="heat-drag"
            style={{
              left: `${(Math.min(drag.from.column, drag.to.column) / map.columns) * 100}%`,
              right: `${100 - ((Math.max(drag.from.column, drag.to.column) + 1) / map.columns) * 100}%`,
              ...(drag.box
                ? {
                    top: Math.min(drag.from.row, drag.to.row) * perRow,
                    bottom: total - (Math.max(drag.from.row, drag.to.row) + 1) * perRow,
                  }
                : {}),
            }}
          />
        )}
        {cursor && words && <Float x={cursor.x} y={cursor.y} width={cursor.width} {...words} />}
        <span className="visually-hidden" aria-live="polite">
          {words ? [words.heading, ...words.lines.map((l) => l.join(' '))].join(', ') : ''}
        </span>
      </div>
      <TimeAxis from={map.from_s} to={map.to_s} />
    </div>
  );
}

/** Hosts beside the rows, and ranks if there is space. A click filters by them. */
function HostLabels(props: { map: Heatmap; perRow: number; programs: boolean }) {
  const { map, perRow, programs } = props;
  const groups = useMemo(() => hostGroups(map.rows), [map.rows]);
  const withRanks = perRow >= 13;
  return (
    <div className="heat-labels" style={{ height: perRow * map.rows.length }}>
      {labeled(groups, perRow).map((g) => (
        <button
          type="button"
          key={g.from}
          className="heat-host"
          style={{ top: g.from * perRow }}
          title={`${g.host}: show only this host`}
          onClick={() => go({ query: { host: g.host } })}
        >
          {g.host === '' ? '–' : g.host}
        </button>
      ))}
      {groups.map((g) => (
        <span
          key={g.from}
          className="heat-bracket"
          aria-hidden="true"
          style={{ top: g.from * perRow, height: Math.max(1, (g.to - g.from) * perRow - 1) }}
        />
      ))}
      {withRanks &&
        map.rows.map((r, i) => (
          <button
            type="button"
            key={i}
            className="heat-rank"
            style={{ top: i * perRow, height: perRow }}
            title={`show the findings of ${rowName(r, programs)}`}
            onClick={() => {
              const which = programs ? { program: r.program } : {};
              go({ view: 'findings', query: { rank: rowRanks(r), ...which } });
            }}
          >
            {rowRanks(r)}
          </button>
        ))}
    </div>
  );
}
