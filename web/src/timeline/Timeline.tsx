import {
  useCallback,
  useEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
} from 'react';
import { useTheme } from '../theme/index.ts';
import { Float, paperOf, useWidth } from '../ui/index.ts';
import { boxKey, boxOf, hitAt, step, type Step } from './find.ts';
import type { Layout } from './layout.ts';
import { axisHeight, paint } from './paint.ts';
import { clampSpan, toTime, zoom, type Span } from './view.ts';
import { hitWords } from './words.ts';
import './timeline.css';

export interface TimelineProps {
  made: Layout;
  bounds: Span;
  span: Span;
  onSpan: (span: Span) => void;
  /** Key of the chosen call; empty: none. */
  selected: string;
  onSelect: (key: string) => void;
  /** What is to be seen, in a sentence. */
  label: string;
  /** What stands beside the heading of a section. */
  aside?: (section: string) => ReactNode;
}

const steps: Readonly<Record<string, Step>> = {
  ArrowLeft: 'before',
  ArrowRight: 'after',
  ArrowUp: 'out',
  ArrowDown: 'in',
};

/**
 * Calls over time, by depth. Dragging moves, the wheel with Ctrl (or after a click
 * into it, without) zooms, arrows step from call to call. What is chosen and seen
 * belongs to the parent.
 */
export function Timeline(props: TimelineProps) {
  const { made, span, bounds, selected, onSpan } = props;
  const theme = useTheme();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [measure, width] = useWidth();
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const drag = useRef<{ x: number; span: Span; moved: boolean } | undefined>(undefined);
  const height = axisHeight + made.height + 4;
  const find = (p: { x: number; y: number }) =>
    width > 0 ? hitAt(made, p.x, p.y - axisHeight, span, width) : {};
  const hit = pointer ? find(pointer) : {};
  const hovered = hit.box ? boxKey(hit.box) : '';
  useEffect(() => {
    const paper = paperOf(canvas.current, width, height);
    if (!paper) return;
    paint(paper, { made, span, width, selected, hovered, theme });
  }, [made, span, width, height, selected, hovered, theme]);
  const attach = useCallback(
    (element: HTMLDivElement | null) => {
      box.current = element;
      measure(element);
    },
    [measure],
  );
  useWheel(box, span, bounds, onSpan);

  const place = (event: PointerEvent) => {
    const r = event.currentTarget.getBoundingClientRect();
    return { x: event.clientX - r.left, y: event.clientY - r.top };
  };
  const move = (event: PointerEvent) => {
    const at = place(event);
    setPointer(at);
    const from = drag.current;
    if (!from || width === 0) return;
    if (Math.abs(at.x - from.x) > 3) from.moved = true;
    if (!from.moved) return;
    const by = ((from.x - at.x) / width) * (from.span.to - from.span.from);
    onSpan(clampSpan({ from: from.span.from + by, to: from.span.to + by }, bounds));
  };
  const up = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = undefined;
    if (!from || from.moved) return;
    const { box: on } = find(place(event));
    const key = on ? boxKey(on) : '';
    props.onSelect(key === selected ? '' : key);
  };
  const keys = (event: KeyboardEvent) => {
    const way = steps[event.key];
    if (way === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const at = boxOf(made, selected);
    const next = at ? step(made, at, way) : made.boxes.find((b) => b.call.self === true);
    if (!next) return;
    props.onSelect(boxKey(next));
    if (next.exit < span.from || next.enter > span.to) {
      const size = span.to - span.from;
      const from = next.enter - size * 0.2;
      onSpan(clampSpan({ from, to: from + size }, bounds));
    }
  };
  const words = hitWords(made, hit);
  return (
    <div className="timeline">
      <Names made={made} aside={props.aside} />
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- an application is moved in with arrows */}
      <div
        ref={attach}
        className="timeline-box"
        style={{ height }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- so that the arrows reach it
        tabIndex={0}
        aria-label={props.label}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: place(event).x, span, moved: false };
        }}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => (drag.current = undefined)}
        onPointerLeave={() => setPointer(undefined)}
        onKeyDown={keys}
      >
        <canvas ref={canvas} style={{ width, height }} />
        {pointer && pointer.x <= width && (
          <span className="timeline-cursor" style={{ left: pointer.x }} aria-hidden="true" />
        )}
        {pointer && words && <Float x={pointer.x} y={pointer.y} width={width} {...words} />}
      </div>
    </div>
  );
}

/** Names of tracks at the left, and headings of sections. */
function Names({ made, aside }: { made: Layout; aside: TimelineProps['aside'] }) {
  return (
    <div className="timeline-names" style={{ height: axisHeight + made.height }}>
      {made.headings.map((h) => (
        <div key={h.section} className="timeline-heading" style={{ top: axisHeight + h.top }}>
          <span>{h.text}</span>
          {aside?.(h.section)}
        </div>
      ))}
      {made.tracks.map((t, i) => (
        <span
          key={i}
          className={`timeline-name ${t.kind}`}
          style={{ top: axisHeight + t.top, height: t.height }}
          title={t.note === '' ? t.name : `${t.name}: ${t.note}`}
        >
          {t.name}
        </span>
      ))}
    </div>
  );
}

/** Zooms and moves with the wheel. Without Ctrl it does so only where the timeline has the focus, so that pages scroll. */
function useWheel(
  box: { current: HTMLDivElement | null },
  span: Span,
  bounds: Span,
  onSpan: (span: Span) => void,
): void {
  const newest = useRef({ span, bounds, onSpan });
  useEffect(() => {
    newest.current = { span, bounds, onSpan };
  });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      const now = newest.current;
      const r = element.getBoundingClientRect();
      const side = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(side) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        const by = (side / Math.max(r.width, 1)) * (now.span.to - now.span.from);
        now.onSpan(clampSpan({ from: now.span.from + by, to: now.span.to + by }, now.bounds));
      } else if (event.ctrlKey || event.metaKey || document.activeElement === element) {
        const at = toTime(event.clientX - r.left, now.span, r.width);
        now.onSpan(zoom(now.span, Math.exp(event.deltaY * 0.0022), at, now.bounds));
      } else return;
      event.preventDefault();
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, [box]);
}
