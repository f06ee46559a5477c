// Layout of calls, messages and counters on the timeline. This file has no side effects.

import type { Arrow, Counter, Lane, LaneCall } from '../api/index.ts';
import type { Span } from './view.ts';

/** A section of the timeline: the execution, a related one, or the normal one. */
export interface Section {
  id: string;
  /** Heading above the lanes; may be empty. */
  heading: string;
  lanes: readonly Lane[];
  arrows: readonly Arrow[];
  counters: readonly Counter[];
  /** Added to all times to make them relative to the entry of the execution. */
  shift: number;
  /** Program and rank, to connect messages of other sections. */
  program: number;
  rank: number;
}

/** A positioned call. Rows count from the top of the track. */
export interface Box {
  call: LaneCall;
  section: string;
  track: number;
  row: number;
  enter: number;
  exit: number;
  /** Number of enclosing callers merged into this box. */
  folded: number;
}

/** A track: a thread, the messages with a rank, or counters. */
export interface Track {
  section: string;
  kind: 'thread' | 'partner' | 'counters';
  name: string;
  /** Tooltip of the name. */
  note: string;
  top: number;
  height: number;
}

/** A line between tracks. Without an end it points off the timeline. */
export interface Link {
  section: string;
  arrow: Arrow;
  from: number;
  to: number;
  fromY: number;
  toY: number;
}

/** A counter reading. */
export interface Mark {
  counter: Counter;
  at: number;
  track: number;
}

/** The heading of a section. */
export interface Heading {
  section: string;
  text: string;
  top: number;
}

export interface Layout {
  tracks: readonly Track[];
  boxes: readonly Box[];
  links: readonly Link[];
  marks: readonly Mark[];
  headings: readonly Heading[];
  height: number;
}

export const rowHeight = 19;
const partnerHeight = 18;
const headingHeight = 26;
const gap = 8;
/** Maximum rows of a thread before its outermost callers merge into one. */
const mostRows = 12;
/** Maximum message partners with their own track; the others share one. */
const mostPartners = 6;

/**
 * Number of outermost levels to merge into one row: levels with a single call open throughout, if there are many rows.
 */
export function foldedLevels(calls: readonly LaneCall[]): number {
  const counts: number[] = [];
  const open: boolean[] = [];
  for (const c of calls) {
    counts[c.depth] = (counts[c.depth] ?? 0) + 1;
    open[c.depth] = (open[c.depth] ?? true) && c.open === true;
  }
  if (counts.length <= mostRows) return 0;
  let alone = 0;
  while (alone < counts.length && counts[alone] === 1 && open[alone] === true) alone++;
  const want = counts.length - mostRows + 1;
  return Math.min(alone, want) > 1 ? Math.min(alone, want) : 0;
}

/** Lays out the sections from top to bottom. */
export function layout(sections: readonly Section[]): Layout {
  const placement = new Maker(sections);
  for (const s of sections) placement.section(s);
  for (const s of sections) placement.arrows(s);
  return placement.done();
}

class Maker {
  private readonly tracks: Track[] = [];
  private readonly boxes: Box[] = [];
  private readonly links: Link[] = [];
  private readonly marks: Mark[] = [];
  private readonly headings: Heading[] = [];
  private readonly lanes = new Map<string, number>(); // track by section and lane
  private readonly partners = new Map<string, number>(); // track by section and rank
  private readonly sections: readonly Section[];
  private top = 0;

  constructor(sections: readonly Section[]) {
    this.sections = sections;
  }

  section(s: Section): void {
    if (s.heading !== '') {
      this.headings.push({ section: s.id, text: s.heading, top: this.top });
      this.top += headingHeight;
    }
    s.lanes.forEach((lane, i) => this.lane(s, lane, i));
    this.addPartners(s);
    if (s.counters.length > 0) {
      const track = this.track(s, 'counters', 'counters', 'counter readings', 16);
      for (const counter of s.counters) {
        this.marks.push({ counter, at: counter.at_us + s.shift, track });
      }
    }
  }

  private lane(s: Section, lane: Lane, index: number): void {
    const folded = foldedLevels(lane.calls);
    const hidden = Math.max(0, folded - 1);
    const rows = lane.calls.reduce((n, c) => Math.max(n, c.depth + 1 - hidden), 1);
    const least = lane.name.length > 22 ? 2 * rowHeight : rowHeight; // space for names of two lines
    const track = this.track(s, 'thread', lane.name, '', Math.max(rows * rowHeight, least));
    this.lanes.set(`${s.id} ${index}`, track);
    for (const call of lane.calls) {
      if (call.depth < hidden) continue; // in the row of the innermost merged call
      this.boxes.push({
        call,
        section: s.id,
        track,
        row: call.depth - hidden,
        enter: call.enter_us + s.shift,
        exit: Math.max(call.enter_us, call.exit_us) + s.shift,
        folded: call.depth === hidden ? hidden : 0,
      });
    }
  }

  private track(s: Section, kind: Track['kind'], name: string, note: string, height: number) {
    this.tracks.push({ section: s.id, kind, name, note, top: this.top, height });
    this.top += height + gap;
    return this.tracks.length - 1;
  }

  /** Adds tracks for message partners that have no section. */
  private addPartners(s: Section): void {
    const counts = new Map<number, number>();
    for (const a of s.arrows) {
      if (a.from_lane >= 0 && a.to_lane >= 0) continue;
      if (this.peer(s, a.partner)) continue;
      counts.set(a.partner, (counts.get(a.partner) ?? 0) + 1);
    }
    const busiest = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([r]) => r);
    const own = busiest.length > mostPartners ? busiest.slice(0, mostPartners - 1) : busiest;
    const note = 'messages with this rank; its calls are not recorded';
    for (const rank of own.sort((a, b) => a - b)) {
      const track = this.track(s, 'partner', `rank ${rank}`, note, partnerHeight);
      this.partners.set(`${s.id} ${rank}`, track);
    }
    const others = busiest.filter((r) => !own.includes(r));
    if (others.length === 0) return;
    const track = this.track(s, 'partner', `${others.length} other ranks`, note, partnerHeight);
    for (const rank of others) this.partners.set(`${s.id} ${rank}`, track);
  }

  /** The section of a rank at the same time; twins are of another time. */
  private peer(s: Section, rank: number): Section | undefined {
    if (s.id === 'twin') return undefined;
    return this.sections.find(
      (o) => o.id !== s.id && o.id !== 'twin' && o.program === s.program && o.rank === rank,
    );
  }

  arrows(s: Section): void {
    for (const arrow of s.arrows) {
      const from = arrow.from_us + s.shift;
      const to = arrow.to_us + s.shift;
      const fromTrack = this.end(s, arrow, arrow.from_lane);
      const toTrack = this.end(s, arrow, arrow.to_lane);
      if (fromTrack === undefined || toTrack === undefined) continue;
      const down = toTrack >= fromTrack;
      this.links.push({
        section: s.id,
        arrow,
        from,
        to,
        fromY: this.edge(fromTrack, from, down || arrow.kind === 'launch'),
        toY: this.edge(toTrack, to, !down),
      });
    }
  }

  private end(s: Section, arrow: Arrow, lane: number): number | undefined {
    if (lane >= 0) return this.lanes.get(`${s.id} ${lane}`);
    const peer = this.peer(s, arrow.partner);
    return peer ? this.lanes.get(`${peer.id} 0`) : this.partners.get(`${s.id} ${arrow.partner}`);
  }

  /** The end of a line at a track: below the innermost call at that time, or above the outermost. */
  private edge(track: number, at: number, below: boolean): number {
    const t = this.tracks[track];
    if (!t) return 0;
    if (t.kind === 'partner') return t.top + t.height / 2;
    if (!below) return t.top;
    let row = 0;
    for (const b of this.boxes) {
      if (b.track === track && b.enter <= at && b.exit >= at) row = Math.max(row, b.row);
    }
    return t.top + (row + 1) * rowHeight;
  }

  done(): Layout {
    const { tracks, boxes, links, marks, headings } = this;
    return { tracks, boxes, links, marks, headings, height: Math.max(this.top - gap, rowHeight) };
  }
}

/** The zoom limits: all recorded times plus a margin. */
export function boundsOf(placement: Layout): Span {
  let from = 0;
  let to = 0;
  for (const b of placement.boxes) {
    from = Math.min(from, b.enter);
    to = Math.max(to, b.exit);
  }
  for (const l of placement.links) {
    from = Math.min(from, l.from, l.to);
    to = Math.max(to, l.from, l.to);
  }
  const room = Math.max((to - from) * 0.02, 1);
  return { from: from - room, to: to + room };
}

/** The initial span: the recorded window, limited so that the execution stays visible. */
export function firstSpan(placement: Layout, section: string): Span {
  const self = placement.boxes.find((b) => b.section === section && b.call.self === true);
  const length = Math.max(self ? self.exit - self.enter : 0, 20);
  const most = 6 * length;
  let from = self?.enter ?? 0;
  let to = self?.exit ?? length;
  const see = (a: number, b: number) => {
    from = Math.min(from, Math.max(a, -most));
    to = Math.max(to, Math.min(b, (self?.exit ?? length) + most));
  };
  for (const b of placement.boxes) {
    if (b.section === 'twin' || b.call.open === true) continue;
    if (b.section === section || b.call.self === true) see(b.enter, b.exit);
  }
  for (const l of placement.links) if (l.section === section) see(l.from, l.to);
  const room = Math.max((to - from) * 0.03, 1);
  return { from: from - room, to: to + room };
}
