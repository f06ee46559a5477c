import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import type { RankTable } from '../../api/index.ts';
import { ratioRamp, token } from '../../color/index.ts';
import { clock } from '../../format/index.ts';
import { useTheme } from '../../theme/index.ts';
import { Float, TimeAxis } from '../../ui/index.ts';
import { mostRatio, pixels, ratioText, rowKey, span } from './ratio.ts';

const height = 320; // approximate pixels of all rows together
const label = 13; // pixels of a label

interface Cell {
  row: number;
  column: number;
  x: number;
  y: number;
  width: number;
}

function rgb(hex: string): readonly [number, number, number] {
  const n = parseInt(hex.replace('#', '').slice(0, 6), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

/** Rows whose labels do not overlap. */
export function labels(count: number, perRow: number): number[] {
  const step = Math.max(1, Math.ceil(label / Math.max(perRow, 0.01)));
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

/** The ratio of rows to their peers over time. Hatched cells have no data. A click or Enter selects a row. */
export function RatioMap(props: {
  table: RankTable;
  selected: string;
  onSelect: (key: string) => void;
}) {
  const { table } = props;
  const { rows } = table;
  const columns = table.windows.length;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const [cursor, setCursor] = useState<Cell>();
  const perRow = Math.min(22, Math.max(1, height / Math.max(rows.length, 1)));
  const total = perRow * rows.length;
  const { from, to } = span(table);
  useEffect(() => {
    const element = canvas.current;
    const paper = element?.getContext('2d');
    if (!element || !paper || columns === 0 || rows.length === 0) return;
    element.width = columns;
    element.height = rows.length;
    const data = pixels(rows, columns, ratioRamp(theme), rgb(token('silent-cell')));
    paper.putImageData(new ImageData(data, columns, rows.length), 0, 0);
  }, [rows, columns, theme]);
  const cellAt = (event: PointerEvent) => {
    const r = box.current?.getBoundingClientRect();
    if (!r || r.width === 0 || rows.length === 0) return undefined;
    const x = Math.min(r.width - 1, Math.max(0, event.clientX - r.left));
    const y = Math.min(total - 1, Math.max(0, event.clientY - r.top));
    const column = Math.floor((x / r.width) * columns);
    return { row: Math.floor(y / perRow), column, x, y, width: r.width };
  };
  const choose = (cell: Cell | undefined) => {
    const row = cell && rows[cell.row];
    if (row) props.onSelect(rowKey(row));
  };
  const keys = (event: KeyboardEvent) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[
      event.key
    ];
    if (event.key === 'Enter' && cursor) choose(cursor);
    else if (move) {
      const width = box.current?.clientWidth ?? 0;
      const at = cursor ?? { row: 0, column: -1 };
      const row = Math.min(rows.length - 1, Math.max(0, at.row + (move[0] ?? 0)));
      const column = Math.min(columns - 1, Math.max(0, at.column + (move[1] ?? 0)));
      const x = ((column + 0.5) / Math.max(columns, 1)) * width;
      setCursor({ row, column, x, y: (row + 0.5) * perRow, width });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const row = cursor && rows[cursor.row];
  const when = cursor && table.windows[cursor.column];
  const words = row &&
    when && {
      heading: row.host === '' || row.place === row.host ? row.place : `${row.place} · ${row.host}`,
      lines: [
        ['ratio here', ratioText(row.ratios[cursor.column])],
        ['time', `${clock(when.from_s, to - from)} to ${clock(when.to_s, to - from)}`],
        ['ratio in the run', row.ratio === null ? 'none' : ratioText(row.ratio)],
        ...(row.missing > 0
          ? [['without data', `${row.missing} of ${row.ranks} ranks`] as const]
          : []),
      ] as const,
    };
  const selected = rows.findIndex((r) => rowKey(r) === props.selected);
  return (
    <div className="ratio-grid">
      <div className="ratio-labels" style={{ height: total }} aria-hidden="true">
        {labels(rows.length, perRow).map((i) => (
          <span key={i} style={{ top: i * perRow, lineHeight: `${Math.max(perRow, label)}px` }}>
            {rows[i]?.place}
          </span>
        ))}
      </div>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={box}
        className="ratio-box"
        style={{ height: total }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
        tabIndex={0}
        aria-label={`Heatmap of the ratio to peers of ${rows.length} rows over time. Arrows move, Enter selects a row. The table below has the same rows.`}
        onPointerMove={(event) => setCursor(cellAt(event))}
        onPointerLeave={() => setCursor(undefined)}
        onPointerUp={(event) => choose(cellAt(event))}
        onKeyDown={keys}
        onBlur={() => setCursor(undefined)}
      >
        <canvas ref={canvas} style={{ height: total }} />
        {selected >= 0 && (
          <span
            className="ratio-row chosen"
            style={{ top: selected * perRow, height: Math.max(perRow, 2) }}
          />
        )}
        {cursor && (
          <span
            className="ratio-row"
            style={{ top: cursor.row * perRow, height: Math.max(perRow, 2) }}
          />
        )}
        {cursor && words && <Float x={cursor.x} y={cursor.y} width={cursor.width} {...words} />}
        <span className="visually-hidden" aria-live="polite">
          {words ? [words.heading, ...words.lines.map((l) => l.join(' '))].join(', ') : ''}
        </span>
      </div>
      {to > from && <TimeAxis from={from} to={to} />}
    </div>
  );
}

/** The color scale of ratios, and the entries for cells without a ratio. */
export function RatioScale() {
  const theme = useTheme();
  const steps = useMemo(() => {
    const table = ratioRamp(theme);
    return Array.from({ length: 24 }, (_, i) => {
      const at = Math.round((i / 23) * 255) * 3;
      return `rgb(${table[at] ?? 0} ${table[at + 1] ?? 0} ${table[at + 2] ?? 0})`;
    });
  }, [theme]);
  return (
    <ul className="ratio-scale">
      <li title="Time of the work divided by that of equal work of peers">
        <span>{(1 / mostRatio).toFixed(1)}×</span>
        <svg width="96" height="10" aria-hidden="true">
          {steps.map((c, i) => (
            <rect key={i} x={i * 4} width="4" height="10" fill={c} />
          ))}
        </svg>
        <span>{mostRatio}× as long as peers</span>
      </li>
      <li title="No calls of comparable work, or no peers">
        <span className="swatch incomparable" /> nothing to compare with
      </li>
      <li title="Nothing is known about these ranks and times">
        <span className="swatch hatched" /> no data
      </li>
    </ul>
  );
}
