import { useRef, useState, type PointerEvent } from 'react';
import './explain.css';

/** A part of a picture, as shares of its width and height from the left and the top. */
export interface Box {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** A sheet over a picture on which a box is drawn with the mouse. */
export function BoxSelect(props: {
  label: string;
  /** Pixels between the box around and the picture itself. */
  inset: { left: number; right: number; top: number; bottom: number };
  onBox: (box: Box) => void;
}) {
  const sheet = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Box>();
  const at = (event: PointerEvent) => {
    const r = sheet.current?.getBoundingClientRect();
    if (!r || r.width === 0 || r.height === 0) return { x: 0, y: 0 };
    const clamp = (v: number) => Math.min(1, Math.max(0, v));
    return {
      x: clamp((event.clientX - r.left) / r.width),
      y: clamp((event.clientY - r.top) / r.height),
    };
  };
  const done = () => {
    const d = drag;
    setDrag(undefined);
    if (!d) return;
    const box = {
      x0: Math.min(d.x0, d.x1),
      x1: Math.max(d.x0, d.x1),
      y0: Math.min(d.y0, d.y1),
      y1: Math.max(d.y0, d.y1),
    };
    if (box.x1 - box.x0 > 0.005 && box.y1 - box.y0 > 0.01) props.onBox(box);
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
        const { x, y } = at(event);
        setDrag({ x0: x, x1: x, y0: y, y1: y });
      }}
      onPointerMove={(event) => {
        if (!drag) return;
        const { x, y } = at(event);
        setDrag({ ...drag, x1: x, y1: y });
      }}
      onPointerUp={done}
      onPointerCancel={() => setDrag(undefined)}
    >
      {drag && (
        <span
          className="box-drawn"
          style={{
            left: `${100 * Math.min(drag.x0, drag.x1)}%`,
            right: `${100 * (1 - Math.max(drag.x0, drag.x1))}%`,
            top: `${100 * Math.min(drag.y0, drag.y1)}%`,
            bottom: `${100 * (1 - Math.max(drag.y0, drag.y1))}%`,
          }}
        />
      )}
    </div>
  );
}
