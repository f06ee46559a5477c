import { useEffect, useMemo, useState, type RefObject } from 'react';

// Long tables draw only visible rows. All rows have the same height, except for expanded content below some.

/** The drawn rows and the space before and after them. */
export interface Window {
  first: number;
  /** The row after the last drawn row. */
  end: number;
  before: number; // pixels
  after: number;
}

/** Returns the top of a row in pixels; extra holds the heights of expanded rows. */
export function top(row: number, rowHeight: number, extra: ReadonlyMap<number, number>): number {
  let y = row * rowHeight;
  for (const [at, height] of extra) if (at < row) y += height;
  return y;
}

/** Returns the visible rows at a scroll position, and some around them. */
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

/** The row window of a scrolling box; all rows if there are few. */
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
      // Round to steps, so that scrolling by a few pixels does not redraw.
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
