import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from 'react';
import type { Finding, Timeline } from '../../api/index.ts';
import { token } from '../../color/index.ts';
import { clock, percent } from '../../format/index.ts';
import { eventPath, go } from '../../route/index.ts';
import { useTheme } from '../../theme/index.ts';
import { Float, paintOn, TimeAxis, useWidth } from '../../ui/index.ts';
import {
  cell,
  cellsOf,
  colorToken,
  marksOf,
  pan,
  pixels,
  rowName,
  rowOf,
  rowRanks,
  words,
  zoom,
  type Frame,
  type RGB,
} from './activity.ts';

/** A stored execution on the timeline. */
export interface Stored {
  event_id: string;
  at_s: number;
  inclusive_us: number;
  program: number;
  rank: number;
  kind: string;
}

export const canvasHeight = 420;
const mostPerRow = 24; // pixels
const near = 6; // pixels within which a click opens a stored execution
const settle = 250; // milliseconds after the last zoom until the address changes

function rgb(hex: string): RGB {
  const n = parseInt(hex.replace('#', '').slice(0, 6), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

interface Point {
  x: number;
  y: number;
}

/**
 * The activities of all ranks. The image of all cells is drawn once; zooming only scales it. The wheel zooms the time, with Shift the ranks; dragging selects a part.
 */
export function ActivityCanvas(props: {
  timeline: Timeline;
  findings: readonly Finding[];
  stored: readonly Stored[];
  programs: boolean;
  span: { t0: number; t1: number } | undefined;
}) {
  const { timeline, findings, stored } = props;
  const { rows } = timeline;
  const theme = useTheme();
  const [measure, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const height = Math.min(canvasHeight, mostPerRow * rows.length);
  const limit = useMemo(
    () => ({ t0: timeline.from_s, t1: timeline.to_s, r0: 0, r1: rows.length }),
    [timeline.from_s, timeline.to_s, rows.length],
  );
  const bin = (limit.t1 - limit.t0) / Math.max(timeline.columns, 1);
  const [moved, setMoved] = useState<Frame>(); // before the address follows
  const frame = moved ?? startOf(limit, props.span, bin);
  const [cursor, setCursor] = useState<Point>();
  const [drag, setDrag] = useState<{ from: Point; to: Point }>();
  const cells = useMemo(() => cellsOf(timeline), [timeline]);
  const image = useMemo(() => {
    if (timeline.columns < 1 || rows.length < 1) return undefined;
    const sheet = document.createElement('canvas');
    sheet.width = timeline.columns;
    sheet.height = rows.length;
    const paper = sheet.getContext('2d');
    if (!paper) return undefined;
    const colors = timeline.classes.map((c) => rgb(token(colorToken[c] ?? 'silent-cell')));
    const data = pixels(cells, colors, theme === 'dark' ? 0.4 : 0.3);
    paper.putImageData(new ImageData(data, timeline.columns, rows.length), 0, 0);
    return sheet;
  }, [cells, timeline.columns, timeline.classes, rows.length, theme]);
  const marks = useMemo(() => marksOf(findings, rows, limit.t1), [findings, rows, limit.t1]);
  // What does not change while somebody zooms is computed once, not in each frame.
  const dots = useMemo(
    () =>
      stored
        .map((s) => ({
          r: rowOf(rows, s.program, s.rank),
          t0: s.at_s,
          t1: s.at_s + s.inclusive_us / 1e6,
        }))
        .filter((d) => d.r >= 0),
    [stored, rows],
  );
  const colors = useMemo(
    () => ({ theme, mark: token('ink'), dot: token('kind-slow') }), // both follow the theme
    [theme],
  );

  const x = (t: number) => ((t - frame.t0) / (frame.t1 - frame.t0)) * width;
  const y = (r: number) => ((r - frame.r0) / (frame.r1 - frame.r0)) * height;
  const time = (px: number) => frame.t0 + (px / Math.max(width, 1)) * (frame.t1 - frame.t0);
  const row = (py: number) => frame.r0 + (py / Math.max(height, 1)) * (frame.r1 - frame.r0);

  useEffect(() => {
    if (!image) return;
    paintOn(canvas.current, width, height, (paper) => {
      paper.clearRect(0, 0, width, height);
      paper.imageSmoothingEnabled = false;
      const column = (t: number) => ((t - limit.t0) / (limit.t1 - limit.t0)) * timeline.columns;
      const [sx, sw] = [column(frame.t0), column(frame.t1) - column(frame.t0)];
      paper.drawImage(image, sx, frame.r0, sw, frame.r1 - frame.r0, 0, 0, width, height);
      paper.strokeStyle = colors.mark;
      paper.lineWidth = 1.5;
      for (const m of marks) {
        if (m.t1 < frame.t0 || m.t0 > frame.t1) continue;
        const h = Math.max(3, y(m.r1) - y(m.r0));
        paper.strokeRect(x(m.t0), y(m.r0), Math.max(3, x(m.t1) - x(m.t0)), h);
      }
      paper.fillStyle = colors.dot;
      const h = Math.max(2, height / (frame.r1 - frame.r0) / 2);
      for (const d of dots) {
        if (d.t1 < frame.t0 || d.t0 > frame.t1) continue;
        paper.fillRect(x(d.t0), y(d.r), Math.max(2, x(d.t1) - x(d.t0)), h);
      }
    });
    // eslint-disable-next-line react-hooks/exhaustive-deps -- x and y follow from these
  }, [image, marks, dots, colors, frame.t0, frame.t1, frame.r0, frame.r1, width, height]);

  // The address follows when zooming pauses. Fewer ranks are fetched again with more detail.
  useEffect(() => {
    if (!moved) return undefined;
    const timer = setTimeout(() => {
      show(moved, limit, rows);
      setMoved(undefined);
    }, settle);
    return () => clearTimeout(timer);
  }, [moved, limit, rows]);

  // React's wheel handlers cannot prevent scrolling.
  const zoomBy = useRef<(px: Point, steps: number, ranks: boolean) => void>(() => undefined);
  useEffect(() => {
    zoomBy.current = (px, steps, ranks) => {
      const factor = 2 ** steps;
      const by = ranks ? { t: 1, r: factor } : { t: factor, r: 1 };
      setMoved(zoom(frame, limit, bin, { t: time(px.x), r: row(px.y) }, by));
    };
  });
  useEffect(() => {
    const element = box.current;
    const wheel = (event: WheelEvent) => {
      const r = element?.getBoundingClientRect();
      if (!r) return;
      event.preventDefault();
      const px = { x: event.clientX - r.left, y: event.clientY - r.top };
      const delta = event.deltaY === 0 ? event.deltaX : event.deltaY; // Shift scrolls sideways
      zoomBy.current(px, delta / 200, event.shiftKey);
    };
    element?.addEventListener('wheel', wheel, { passive: false });
    return () => element?.removeEventListener('wheel', wheel);
  }, []);

  const pointOf = (event: PointerEvent): Point => {
    const r = box.current?.getBoundingClientRect();
    const clamp = (n: number, most: number) => Math.min(Math.max(most - 1, 0), Math.max(0, n));
    return r
      ? { x: clamp(event.clientX - r.left, width), y: clamp(event.clientY - r.top, height) }
      : { x: 0, y: 0 };
  };
  const open = (p: Point) => {
    const r = rows[Math.floor(row(p.y))];
    if (!r) return;
    const hit = stored.find(
      (s) =>
        rowOf(rows, s.program, s.rank) === rows.indexOf(r) &&
        p.x >= x(s.at_s) - near &&
        p.x <= x(s.at_s + s.inclusive_us / 1e6) + near,
    );
    const which = props.programs ? { program: r.program } : {};
    if (hit) go({ event: eventPath(hit.program, hit.event_id) });
    else {
      const at = Math.floor((time(p.x) - limit.t0) / bin) * bin + limit.t0;
      const when = { t0: tidy(at, bin), t1: tidy(at + bin, bin) };
      go({ view: 'findings', query: { rank: rowRanks([r]), ...when, ...which } });
    }
  };
  const up = () => {
    if (!drag) return;
    setDrag(undefined);
    const { from, to } = drag;
    const far = Math.abs(to.x - from.x) > near;
    const tall = Math.abs(to.y - from.y) > Math.max(near, height / Math.max(rows.length, 1));
    if (!far && !tall) {
      open(to);
      return;
    }
    const next = { ...frame };
    if (far) {
      next.t0 = time(Math.min(from.x, to.x));
      next.t1 = time(Math.max(from.x, to.x));
    }
    if (tall) {
      next.r0 = Math.floor(row(Math.min(from.y, to.y)));
      next.r1 = Math.ceil(row(Math.max(from.y, to.y)));
    }
    setMoved(next);
  };
  const keys = (event: KeyboardEvent) => {
    const at = cursor ?? { x: 0, y: 0 };
    const perColumn = Math.max(1, (bin / (frame.t1 - frame.t0)) * width);
    const perRow = Math.max(1, height / (frame.r1 - frame.r0));
    const step = { t: (frame.t1 - frame.t0) / 4, r: Math.ceil((frame.r1 - frame.r0) / 4) };
    const moves: Record<string, readonly [number, number]> = {
      ArrowLeft: [-perColumn, 0],
      ArrowRight: [perColumn, 0],
      ArrowUp: [0, -perRow],
      ArrowDown: [0, perRow],
    };
    const pans: Record<string, { t: number; r: number }> = {
      a: { t: -step.t, r: 0 },
      d: { t: step.t, r: 0 },
      PageUp: { t: 0, r: -step.r },
      PageDown: { t: 0, r: step.r },
    };
    const move = moves[event.key];
    const by = pans[event.key];
    if (event.key === 'Enter' && cursor) open(cursor);
    else if (event.key === '+' || event.key === 'w') zoomBy.current(at, -1, false);
    else if (event.key === '-' || event.key === 's') zoomBy.current(at, 1, false);
    else if (event.key === '*') zoomBy.current(at, -1, true);
    else if (event.key === '0' || event.key === 'Home')
      go({ query: { t0: '', t1: '', rank: '' } }, true);
    else if (by) setMoved(pan(frame, limit, by));
    else if (move) {
      const clamp = (n: number, most: number) => Math.min(Math.max(most - 1, 0), Math.max(0, n));
      setCursor({ x: clamp(at.x + move[0], width), y: clamp(at.y + move[1], height) });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const text = cursor && describe(cursor);
  function describe(p: Point) {
    const r = Math.floor(row(p.y));
    const at = rows[r];
    const c = Math.min(timeline.columns - 1, Math.floor((time(p.x) - limit.t0) / bin));
    if (!at || c < 0) return undefined;
    const { class: kind, share } = cell(cells[r * timeline.columns + c] ?? 0);
    const name = words[timeline.classes[kind] ?? ''] ?? '';
    const begin = limit.t0 + c * bin;
    const inside = marks.find(
      (m) => r >= m.r0 && r < m.r1 && begin < m.t1 && begin + bin > m.t0,
    )?.finding;
    return {
      heading: `${rowName(at, props.programs)}${at.host === undefined ? '' : ` · ${at.host}`}`,
      lines: [
        ['mostly', kind === 0 ? name : `${name} (${percent(Math.round(100 * share))})`],
        [
          'time',
          `${clock(begin, frame.t1 - frame.t0)} to ${clock(begin + bin, frame.t1 - frame.t0)}`,
        ],
        ...(inside
          ? [['finding', `${inside.finding}: ${inside.function || inside.kind}`] as const]
          : []),
      ] as const,
    };
  }
  const label = `Timeline of ${timeline.ranks} ranks. Arrows move, plus and minus zoom the time, asterisk the ranks, 0 shows everything, Enter opens what is stored there. The table below has the same rows.`;
  return (
    <div className="activity-grid">
      <div className="activity-labels" style={{ height }} aria-hidden="true">
        {labelsOf(frame, height).map((r) => (
          <span key={r} style={{ top: y(r) }}>
            {rows[r] && rowName(rows[r], props.programs)}
          </span>
        ))}
      </div>
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={(element) => {
          box.current = element;
          measure(element);
        }}
        className="activity-box"
        style={{ height }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
        tabIndex={0}
        aria-label={label}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag({ from: pointOf(event), to: pointOf(event) });
        }}
        onPointerMove={(event) => {
          const p = pointOf(event);
          setCursor(p);
          if (drag) setDrag({ ...drag, to: p });
        }}
        onPointerUp={up}
        onPointerCancel={() => setDrag(undefined)}
        onPointerLeave={() => setCursor(undefined)}
        onKeyDown={keys}
        onBlur={() => setCursor(undefined)}
      >
        <canvas ref={canvas} style={{ height }} />
        {drag && (
          <span
            className="activity-drag"
            style={{
              left: Math.min(drag.from.x, drag.to.x),
              top: Math.min(drag.from.y, drag.to.y),
              width: Math.abs(drag.to.x - drag.from.x),
              height: Math.abs(drag.to.y - drag.from.y),
            }}
          />
        )}
        {cursor && text && !drag && <Float x={cursor.x} y={cursor.y} width={width} {...text} />}
        <span className="visually-hidden" aria-live="polite">
          {text ? [text.heading, ...text.lines.map((l) => l.join(' '))].join(', ') : ''}
        </span>
      </div>
      <TimeAxis from={frame.t0} to={frame.t1} />
    </div>
  );
}

function startOf(limit: Frame, span: { t0: number; t1: number } | undefined, least: number): Frame {
  if (!span) return limit;
  const t0 = Math.min(limit.t1 - least, Math.max(limit.t0, span.t0));
  return { ...limit, t0, t1: Math.max(t0 + least, Math.min(limit.t1, span.t1)) };
}

function tidy(s: number, bin: number): number {
  return Number(s.toFixed(bin < 0.01 ? 6 : bin < 1 ? 3 : 1));
}

/** Writes a part to the address. */
function show(frame: Frame, limit: Frame, rows: Timeline['rows']): void {
  const bin = (frame.t1 - frame.t0) / 100;
  const all = frame.t0 <= limit.t0 && frame.t1 >= limit.t1;
  const part = rows.slice(Math.floor(frame.r0), Math.ceil(frame.r1));
  const one = new Set(part.map((r) => r.program)).size === 1;
  go(
    {
      query: {
        t0: all ? '' : tidy(frame.t0, bin),
        t1: all ? '' : tidy(frame.t1, bin),
        ...(part.length < rows.length && one ? { rank: rowRanks(part) } : {}),
      },
    },
    true,
  );
}

const labelHeight = 13;

/** Rows whose labels do not overlap. */
function labelsOf(frame: Frame, height: number): number[] {
  const [first, last] = [Math.ceil(frame.r0), Math.floor(frame.r1 - 1e-9)];
  const perRow = height / Math.max(frame.r1 - frame.r0, 1e-9);
  const step = Math.max(1, Math.ceil(labelHeight / perRow));
  return Array.from(
    { length: Math.max(0, Math.floor((last - first) / step) + 1) },
    (_, i) => first + i * step,
  );
}
