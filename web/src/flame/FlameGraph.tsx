import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent } from 'react';
import { bare, count, duration, elide, percent, source } from '../format/index.ts';
import { useTheme } from '../theme/index.ts';
import { Float, paintOn, useWidth } from '../ui/index.ts';
import { levels, neighbor, seenFrom, type Cell } from './layout.ts';
import { paint, rowHeight } from './paint.ts';
import './flame.css';

export interface FlameGraphProps {
  cells: readonly Cell[];
  /** The zoomed cell. */
  focus: Cell;
  onFocus: (cell: Cell) => void;
  chosen: Cell | undefined;
  onChoose: (cell: Cell | undefined) => void;
  matches: ReadonlySet<Cell> | undefined;
  /** Label of times: "time" or "lost time". */
  what: string;
  /** Label of counts: "calls" or "anomalies". */
  counts: string;
  label: string;
  /** Overrides the color of a cell; must be a stable function. */
  fill?: (cell: Cell) => string;
  /** Overrides the tooltip lines of a cell. */
  words?: (cell: Cell) => readonly (readonly [string, string])[];
}

/** A flame graph: functions below their callers, as wide as their time. A click or Enter zooms in, Escape zooms out, arrows move. */
export function FlameGraph(props: FlameGraphProps) {
  const { focus, chosen, matches, fill } = props;
  const theme = useTheme();
  const [measure, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const root = props.cells[0] ?? focus;
  const height = Math.max(levels(focus), 2) * rowHeight;
  const seen = useMemo(() => seenFrom(focus, width), [focus, width]);
  const cellAt = (p: { x: number; y: number }) =>
    seen.find(
      (s) =>
        s.cell.depth === Math.floor(p.y / rowHeight) &&
        p.x >= s.x &&
        p.x < s.x + Math.max(s.width, 1),
    )?.cell;
  const hovered = pointer ? cellAt(pointer) : undefined;
  useEffect(() => {
    paintOn(canvas.current, width, height, (paper) =>
      paint(paper, { seen, width, height, matches, chosen, hovered, theme, fill }),
    );
  }, [seen, width, height, matches, chosen, hovered, theme, fill]);
  const keys = (event: KeyboardEvent) => {
    const at = chosen ?? focus;
    if (event.key === 'Enter') props.onFocus(at);
    else if (event.key === 'Escape') {
      if (focus.parent) props.onFocus(focus.parent);
      else if (chosen) props.onChoose(undefined);
      else return; // let the page go back
    } else if (event.key === 'Home') props.onFocus(root);
    else if (event.key.startsWith('Arrow')) {
      const next = chosen ? neighbor(at, event.key, focus) : focus;
      if (next) props.onChoose(next);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const words = (cell: Cell): readonly (readonly [string, string])[] => [
    ...(source(cell.node.function) === '' ? [] : [['in', source(cell.node.function)] as const]),
    ...(props.words?.(cell) ?? timeWords(cell)),
  ];
  const timeWords = (cell: Cell): readonly (readonly [string, string])[] => [
    [`${props.what}, itself`, `${duration(cell.node.self_us)}, ${share(cell.node.self_us, root)}`],
    ['inclusive', `${duration(cell.node.total_us)}, ${share(cell.node.total_us, root)}`],
    [props.counts, count(cell.node.calls)],
  ];
  const place = (event: MouseEvent) => {
    const r = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - r.left, y: event.clientY - r.top };
  };
  const current = chosen ?? focus;
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys
    <div
      ref={measure}
      className="flame"
      style={{ height }}
      role="application"
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
      tabIndex={0}
      aria-label={props.label}
      onPointerMove={(event) => setPointer(place(event))}
      onPointerLeave={() => setPointer(undefined)}
      onClick={(event) => {
        const cell = cellAt(place(event));
        if (!cell) return;
        props.onChoose(cell);
        props.onFocus(cell);
      }}
      onKeyDown={keys}
    >
      <canvas ref={canvas} style={{ width, height }} />
      {pointer && hovered && (
        <Float
          x={pointer.x}
          y={pointer.y}
          width={width}
          heading={elide(bare(hovered.node.function), 90)}
          lines={words(hovered)}
        />
      )}
      <span className="visually-hidden" aria-live="polite">
        {[bare(current.node.function), ...words(current).map((l) => l.join(' '))].join(', ')}
      </span>
    </div>
  );
}

/** A time in percent of the total. */
export function share(us: number, root: Cell): string {
  return root.node.total_us > 0 ? percent((100 * us) / root.node.total_us) : percent(0);
}
