import { DrawSheet, type Sheet } from './DrawSheet.tsx';
import { outline, type Spot } from './lasso.ts';

/** An overlay for drawing a lasso. */
export function LassoSelect({
  onLasso,
  ...sheet
}: Sheet & {
  /** Called with the corners, as fractions of width and height from the top left. */
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
