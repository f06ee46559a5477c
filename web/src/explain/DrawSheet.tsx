import { useRef, useState, type PointerEvent, type ReactNode } from 'react';
import type { Spot } from './lasso.ts';
import './explain.css';

/** Props of an overlay over a plot. */
export interface Sheet {
  label: string;
  /** Pixels between the enclosing box and the plot. */
  inset: { left: number; right: number; top: number; bottom: number };
}

/** Pointer positions, as fractions of width and height from the top left. */
export type Path = [Spot, ...Spot[]];

/** An overlay for drawing with the mouse, from press to release. */
export function DrawSheet(
  props: Sheet & {
    onDrawn: (path: Path) => void;
    /** Renders the current drawing. */
    children: (path: Path) => ReactNode;
  },
) {
  const sheet = useRef<HTMLDivElement>(null);
  const [path, setPath] = useState<Path>();
  const at = (event: PointerEvent): Spot => {
    const r = sheet.current?.getBoundingClientRect();
    if (!r || r.width === 0 || r.height === 0) return { x: 0, y: 0 };
    const clamp = (v: number) => Math.min(1, Math.max(0, v));
    return {
      x: clamp((event.clientX - r.left) / r.width),
      y: clamp((event.clientY - r.top) / r.height),
    };
  };
  return (
    <div
      ref={sheet}
      className="box-select"
      style={props.inset}
      role="img"
      aria-label={props.label}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setPath([at(event)]);
      }}
      onPointerMove={(event) => {
        if (path) setPath([...path, at(event)]);
      }}
      onPointerUp={() => {
        setPath(undefined);
        if (path) props.onDrawn(path);
      }}
      onPointerCancel={() => setPath(undefined)}
    >
      {path && props.children(path)}
    </div>
  );
}
