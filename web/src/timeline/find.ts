// Hit testing and keyboard navigation on the timeline. This file has no side effects.

import { rowHeight, type Box, type Layout, type Link, type Mark } from './layout.ts';
import { toX, type Span } from './view.ts';

/** The items at a point. */
export interface Hit {
  box?: Box;
  link?: Link;
  marks?: readonly Mark[];
}

const near = 4; // pixels

/** Returns the items at a pixel; of several calls the smallest. */
export function hitAt(placement: Layout, x: number, y: number, span: Span, width: number): Hit {
  const track = placement.tracks.findIndex((t) => y >= t.top && y < t.top + t.height);
  const t = placement.tracks[track];
  if (t?.kind === 'thread') {
    const row = Math.floor((y - t.top) / rowHeight);
    let best: Box | undefined;
    for (const b of placement.boxes) {
      if (b.track !== track || b.row !== row) continue;
      const left = toX(b.enter, span, width);
      const right = Math.max(toX(b.exit, span, width), left + 2);
      if (x < left - 1 || x > right + 1) continue;
      if (!best || b.exit - b.enter < best.exit - best.enter) best = b;
    }
    if (best) return { box: best };
  }
  if (t?.kind === 'counters') {
    const marks = placement.marks.filter(
      (m) => m.track === track && Math.abs(toX(m.at, span, width) - x) <= near,
    );
    if (marks.length > 0) return { marks };
  }
  const link = placement.links.find((l) => distance(l, x, y, span, width) <= near);
  return link ? { link } : {};
}

/** Distance of a point from a line in pixels. */
function distance(l: Link, x: number, y: number, span: Span, width: number): number {
  const [x1, x2] = [toX(l.from, span, width), toX(l.to, span, width)];
  const [dx, dy] = [x2 - x1, l.toY - l.fromY];
  const size = dx * dx + dy * dy;
  const part = size > 0 ? Math.min(1, Math.max(0, ((x - x1) * dx + (y - l.fromY) * dy) / size)) : 0;
  return Math.hypot(x - x1 - part * dx, y - l.fromY - part * dy);
}

/** The key of a call; a call can be in several sections. */
export function boxKey(b: Box): string {
  return b.section === 'this' ? b.call.event_id : `${b.section}/${b.call.event_id}`;
}

export function boxOf(placement: Layout, key: string): Box | undefined {
  return key === '' ? undefined : placement.boxes.find((b) => boxKey(b) === key);
}

export type Step = 'before' | 'after' | 'out' | 'in';

/**
 * Returns the call one step away: the previous or next in the row, the caller, or the longest callee. Steps beyond a track lead to the next track.
 */
export function step(placement: Layout, from: Box, way: Step): Box | undefined {
  const track = placement.boxes.filter((b) => b.track === from.track);
  const row = track.filter((b) => b.row === from.row).sort((a, b) => a.enter - b.enter);
  const at = row.indexOf(from);
  if (way === 'before') return row[at - 1];
  if (way === 'after') return row[at + 1];
  const inner = way === 'in';
  const beside = track.filter(
    (b) =>
      b.row === from.row + (inner ? 1 : -1) &&
      (inner
        ? b.enter >= from.enter && b.enter <= from.exit
        : b.enter <= from.enter && b.exit >= from.enter),
  );
  if (inner) {
    const child = beside.sort((a, b) => rank(b) - rank(a))[0];
    if (child) return child;
  } else if (beside.length > 0) return beside.at(-1);
  const next = from.track + (inner ? 1 : -1);
  const others = placement.boxes.filter((b) => (inner ? b.track >= next : b.track <= next));
  if (others.length === 0) return undefined;
  const goal = inner
    ? Math.min(...others.map((b) => b.track))
    : Math.max(...others.map((b) => b.track));
  const inTrack = others.filter((b) => b.track === goal);
  const edge = inner ? 0 : Math.max(...inTrack.map((b) => b.row));
  return inTrack.find((b) => b.row === edge);
}

/** Navigation priority: the execution itself, then longer calls. */
function rank(b: Box): number {
  return (b.call.self === true ? 1e18 : 0) + (b.exit - b.enter);
}

/** The own time of a call, without its recorded callees. */
export function ownTime(placement: Layout, of: Box): number {
  let own = of.exit - of.enter;
  for (const b of placement.boxes) {
    if (b.track === of.track && b.row === of.row + 1 && b.enter >= of.enter && b.exit <= of.exit) {
      if (b.enter < of.exit || of.exit === of.enter) own -= b.exit - b.enter;
    }
  }
  return Math.max(0, own);
}
