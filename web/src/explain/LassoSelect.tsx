import { DrawSheet, type Sheet } from './DrawSheet.tsx';
import { outline, type Spot } from './lasso.ts';

/** A sheet over a picture on which something is drawn around with the mouse. */
export function LassoSelect({
  onLasso,
  ...sheet
}: Sheet & {
  /** Corners as shares of width and height from the left and the top. */
  onLasso: (corners: Spot[]) => void;
}) {
  return (
    <DrawSheet
      {...sheet}
      onDrawn={(path) => {
        const corners = outline(path);
        if (corners.length >= 3) onLasso(corners);
      }}
    >
      {(path) =>
        path.length > 1 && (
          <svg
            className="lasso-drawn"
            viewBox="0 0 1 1"
            preserveAspectRatio="none"
            aria-hidden="true"
          >
            <polygon points={path.map((p) => `${p.x},${p.y}`).join(' ')} />
          </svg>
        )
      }
    </DrawSheet>
  );
}
