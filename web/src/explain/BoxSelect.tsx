import { DrawSheet, type Path, type Sheet } from './DrawSheet.tsx';

/** A box in a plot, as fractions of its width and height from the top left. */
export interface Box {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** The box between the first and the last point. */
function boxOf(path: Path): Box {
  const from = path[0];
  const to = path.at(-1) ?? from;
  return {
    x0: Math.min(from.x, to.x),
    x1: Math.max(from.x, to.x),
    y0: Math.min(from.y, to.y),
    y1: Math.max(from.y, to.y),
  };
}

/** An overlay for drawing a box. */
export function BoxSelect({ onBox, ...sheet }: Sheet & { onBox: (box: Box) => void }) {
  return (
    <DrawSheet
      {...sheet}
      onDrawn={(path) => {
        const box = boxOf(path);
        if (box.x1 - box.x0 > 0.005 && box.y1 - box.y0 > 0.01) onBox(box);
      }}
    >
      {(path) => {
        const box = boxOf(path);
        return (
          <span
            className="box-drawn"
            style={{
              left: `${100 * box.x0}%`,
              right: `${100 * (1 - box.x1)}%`,
              top: `${100 * box.y0}%`,
              bottom: `${100 * (1 - box.y1)}%`,
            }}
          />
        );
      }}
    </DrawSheet>
  );
}
