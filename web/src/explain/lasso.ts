// Simplifies a drawn path to a polygon. This file has no side effects.

/** A point in a plot, as fractions of its width and height. */
export interface Spot {
  x: number;
  y: number;
}

/** The server's limit on polygon corners. */
export const mostCorners = 40;

/**
 * Returns the polygon of a path without nearly collinear corners, dropping more if there are too many. Empty if the area is negligible.
 */
export function outline(path: readonly Spot[]): Spot[] {
  if (Math.abs(area(path)) < 1e-4) return [];
  // Split the path at the point farthest from its start, because a line from a point to itself has no direction.
  const first = path[0];
  if (!first) return [];
  let far = 0;
  path.forEach((p, i) => {
    if (distance(p, first) > distance(path[far] ?? first, first)) far = i;
  });
  const there = path.slice(0, far + 1);
  const back = [...path.slice(far), first];
  for (let tolerance = 0.002; ; tolerance *= 1.5) {
    const corners = [...thinned(there, tolerance).slice(0, -1), ...thinned(back, tolerance)].slice(
      0,
      -1,
    );
    if (corners.length <= mostCorners) return corners.length >= 3 ? corners : [];
  }
}

function distance(a: Spot, b: Spot): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function area(path: readonly Spot[]): number {
  return (
    path.reduce((sum, p, i) => {
      const next = path[(i + 1) % path.length] ?? p;
      return sum + p.x * next.y - next.x * p.y;
    }, 0) / 2
  );
}

/** Simplifies a line within the tolerance (Ramer–Douglas–Peucker). */
function thinned(line: readonly Spot[], tolerance: number): Spot[] {
  const a = line[0];
  const b = line.at(-1);
  if (!a || !b || line.length < 3) return [...line];
  const length = Math.max(distance(a, b), 1e-9);
  let worst = 0;
  let at = 0;
  line.forEach((p, i) => {
    const off = Math.abs((b.x - a.x) * (a.y - p.y) - (a.x - p.x) * (b.y - a.y)) / length;
    if (off > worst) [worst, at] = [off, i];
  });
  if (worst <= tolerance) return [a, b];
  return [
    ...thinned(line.slice(0, at + 1), tolerance),
    ...thinned(line.slice(at), tolerance).slice(1),
  ];
}
