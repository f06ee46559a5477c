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
import { Float, paintOn, useWidth } from '../ui/index.ts';
import { boxKey, boxOf, hitAt, step, type Step } from './find.ts';
import type { Layout } from './layout.ts';
import { axisHeight, paint } from './paint.ts';
import { clampSpan, toTime, zoom, type Span } from './view.ts';
import { hitWords } from './words.ts';
import './timeline.css';

export interface TimelineProps {
  placement: Layout;
  bounds: Span;
  span: Span;
  onSpan: (span: Span) => void;
  /** Key of the selected call; empty if none. */
  selected: string;
  onSelect: (key: string) => void;
  /** Description for screen readers. */
  label: string;
  /** Content beside the heading of a section. */
  aside?: (section: string) => ReactNode;
}

const steps: Readonly<Record<string, Step>> = {
  ArrowLeft: 'before',
  ArrowRight: 'after',
  ArrowUp: 'out',
  ArrowDown: 'in',
};

/**
 * Calls over time, by depth. Dragging moves; Ctrl and the wheel, or the wheel alone after a click, zooms; arrows move between calls. The parent owns the selection and the span.
 */
export function Timeline(props: TimelineProps) {
  const { placement, span, bounds, selected, onSpan } = props;
  const theme = useTheme();
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const [measure, width] = useWidth();
  const [pointer, setPointer] = useState<{ x: number; y: number }>();
  const drag = useRef<{ x: number; span: Span; moved: boolean } | undefined>(undefined);
  const height = axisHeight + placement.height + 4;
  const find = (p: { x: number; y: number }) =>
    width > 0 ? hitAt(placement, p.x, p.y - axisHeight, span, width) : {};
  const hit = pointer ? find(pointer) : {};
  const hovered = hit.box ? boxKey(hit.box) : '';
  useEffect(() => {
    paintOn(canvas.current, width, height, (paper) =>
      paint(paper, { placement, span, width, selected, hovered, theme }),
    );
  }, [placement, span, width, height, selected, hovered, theme]);
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
    const at = boxOf(placement, selected);
    const next = at ? step(placement, at, way) : placement.boxes.find((b) => b.call.self === true);
    if (!next) return;
    props.onSelect(boxKey(next));
    if (next.exit < span.from || next.enter > span.to) {
      const size = span.to - span.from;
      const from = next.enter - size * 0.2;
      onSpan(clampSpan({ from, to: from + size }, bounds));
    }
  };
  const words = hitWords(placement, hit);
  return (
    <div className="timeline">
      <Names placement={placement} aside={props.aside} />
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- role application has arrow keys */}
      <div
        ref={attach}
        className="timeline-box"
        style={{ height }}
        role="application"
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- arrow keys need the focus
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

/** Track names on the left and section headings. */
function Names({ placement, aside }: { placement: Layout; aside: TimelineProps['aside'] }) {
  return (
    <div className="timeline-names" style={{ height: axisHeight + placement.height }}>
      {placement.headings.map((h) => (
        <div key={h.section} className="timeline-heading" style={{ top: axisHeight + h.top }}>
          <span>{h.text}</span>
          {aside?.(h.section)}
        </div>
      ))}
      {placement.tracks.map((t, i) => (
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

/** Zooms and moves with the wheel; without Ctrl only if the timeline has the focus, so that pages scroll. */
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
