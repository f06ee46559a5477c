import { useEffect, useMemo, useState, type RefObject } from 'react';

// Long tables draw only the rows in sight. All rows have the same height, but some
// have something unfolded below.

/** Which rows are drawn, and how much room those before and after take. */
export interface Window {
  first: number;
  /** The row after the last one that is drawn. */
  end: number;
  before: number; // pixels
  after: number;
}

/** Where a row begins, in pixels: extra are heights of what is unfolded below rows. */
export function top(row: number, rowHeight: number, extra: ReadonlyMap<number, number>): number {
  let y = row * rowHeight;
  for (const [at, height] of extra) if (at < row) y += height;
  return y;
}

/** The rows in sight of a box that is scrolled by so much, and some around them. */
export function windowOf(
  count: number,
  scrolled: number,
  height: number,
  rowHeight: number,
  extra: ReadonlyMap<number, number>,
  around = 12,
): Window {
  const at = (y: number) => {
    let [low, high] = [0, count]; // the last row that begins at or above y
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (top(middle, rowHeight, extra) <= y) low = middle;
      else high = middle;
    }
    return low;
  };
  const first = Math.max(0, at(scrolled) - around);
  const end = Math.min(count, at(scrolled + height) + 1 + around);
  const all = top(count, rowHeight, extra);
  return {
    first,
    end,
    before: top(first, rowHeight, extra),
    after: all - top(end, rowHeight, extra),
  };
}

/** The window of a box that scrolls. With few rows all are drawn. */
export function useWindow(
  box: RefObject<HTMLElement | null>,
  count: number,
  rowHeight: number,
  extra: ReadonlyMap<number, number>,
  active: boolean,
): Window {
  const [seen, setSeen] = useState({ scrolled: 0, height: 800 });
  useEffect(() => {
    const element = box.current;
    if (!active || !element) return;
    const look = () => {
      const height = element.clientHeight > 0 ? element.clientHeight : 800;
      // Whole steps: scrolling by a few pixels draws nothing again.
      const scrolled = Math.floor(element.scrollTop / (rowHeight * 4)) * rowHeight * 4;
      setSeen((now) =>
        now.scrolled === scrolled && now.height === height ? now : { scrolled, height },
      );
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, [active, box, rowHeight]);
  return useMemo(
    () =>
      active
        ? windowOf(count, seen.scrolled, seen.height, rowHeight, extra)
        : { first: 0, end: count, before: 0, after: 0 },
    [active, count, seen, rowHeight, extra],
  );
}
