import { useRef, useState, type PointerEvent } from 'react';
import { outline, type Spot } from './lasso.ts';
import './explain.css';

/** A sheet over a picture on which something is drawn around with the mouse. */
export function LassoSelect(props: {
  label: string;
  /** Pixels between the box around and the picture itself. */
  inset: { left: number; right: number; top: number; bottom: number };
  /** Corners as shares of width and height from the left and the top. */
  onLasso: (corners: Spot[]) => void;
}) {
  const sheet = useRef<HTMLDivElement>(null);
  const [path, setPath] = useState<Spot[]>([]);
  const at = (event: PointerEvent): Spot => {
    const r = sheet.current?.getBoundingClientRect();
    if (!r || r.width === 0 || r.height === 0) return { x: 0, y: 0 };
    const clamp = (v: number) => Math.min(1, Math.max(0, v));
    return {
      x: clamp((event.clientX - r.left) / r.width),
      y: clamp((event.clientY - r.top) / r.height),
    };
  };
  const done = () => {
    setPath([]);
    const corners = outline(path);
    if (corners.length >= 3) props.onLasso(corners);
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
        if (path.length > 0) setPath([...path, at(event)]);
      }}
      onPointerUp={done}
      onPointerCancel={() => setPath([])}
    >
      {path.length > 1 && (
        <svg
          className="lasso-drawn"
          viewBox="0 0 1 1"
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          <polygon points={path.map((p) => `${p.x},${p.y}`).join(' ')} />
        </svg>
      )}
    </div>
  );
}
