// Draws the timeline on a canvas.

import { functionFill, token } from '../color/index.ts';
import { bare } from '../format/index.ts';
import { cutText, type Paper } from '../ui/index.ts';
import { boxKey } from './find.ts';
import { rowHeight, type Box, type Layout, type Link } from './layout.ts';
import { axisTicks, toX, type Span } from './view.ts';

export const axisHeight = 24;

/** The state to draw. */
export interface Picture {
  placement: Layout;
  span: Span;
  width: number;
  selected: string;
  hovered: string;
  theme: 'dark' | 'light';
}

interface Colors {
  ink: string;
  ink3: string;
  panel: string;
  line: string;
  accent: string;
  bad: string;
  mpi: string;
  gpu: string;
  counter: string;
  text: string;
}

function colors(theme: 'dark' | 'light'): Colors {
  return {
    ink: token('ink'),
    ink3: token('ink-3'),
    panel: token('panel'),
    line: token('line'),
    accent: token('accent'),
    bad: token('kind-slow'),
    mpi: token('group-mpi'),
    gpu: token('group-gpu'),
    counter: token('watch'),
    text: theme === 'dark' ? '#0b0e12' : '#ffffff',
  };
}

/** Draws the timeline. The canvas is as wide as the timeline, in CSS pixels. */
export function paint(paper: Paper, p: Picture): void {
  const c = colors(p.theme);
  paper.save();
  paper.clearRect(0, 0, p.width, axisHeight + p.placement.height);
  paper.font = '11px system-ui, sans-serif';
  paper.textBaseline = 'middle';
  drawAxis(paper, p, c);
  paper.translate(0, axisHeight);
  drawTracks(paper, p, c);
  const full = new Map<string, number>(); // rightmost drawn pixel by row
  for (const b of p.placement.boxes) drawBox(paper, p, c, b, full);
  for (const l of p.placement.links) drawLink(paper, p, c, l);
  for (const m of p.placement.marks) {
    const x = toX(m.at, p.span, p.width);
    const t = p.placement.tracks[m.track];
    if (!t || x < -5 || x > p.width + 5) continue;
    paper.fillStyle = c.counter;
    paper.beginPath();
    paper.moveTo(x, t.top + 2);
    paper.lineTo(x + 4, t.top + 10);
    paper.lineTo(x - 4, t.top + 10);
    paper.fill();
  }
  paper.restore();
}

function drawAxis(paper: Paper, p: Picture, c: Colors): void {
  const most = Math.max(2, Math.floor(p.width / 110));
  paper.lineWidth = 1;
  for (const tick of axisTicks(p.span, most)) {
    const x = Math.round(toX(tick.at, p.span, p.width)) + 0.5;
    paper.strokeStyle = tick.at === 0 ? c.ink3 : c.line;
    paper.beginPath();
    paper.moveTo(x, axisHeight - 6);
    paper.lineTo(x, axisHeight + p.placement.height);
    paper.stroke();
    paper.fillStyle = tick.at === 0 ? c.ink : c.ink3;
    const wide = paper.measureText(tick.label).width;
    const left = Math.min(Math.max(x - wide / 2, 1), p.width - wide - 1);
    paper.fillText(tick.label, left, 9);
  }
}

function drawTracks(paper: Paper, p: Picture, c: Colors): void {
  for (const t of p.placement.tracks) {
    if (t.kind === 'thread') continue;
    paper.strokeStyle = c.line;
    paper.setLineDash(t.kind === 'partner' ? [3, 4] : []);
    const y = Math.round(t.top + (t.kind === 'partner' ? t.height / 2 : 10)) + 0.5;
    paper.beginPath();
    paper.moveTo(0, y);
    paper.lineTo(p.width, y);
    paper.stroke();
    paper.setLineDash([]);
  }
}

function drawBox(paper: Paper, p: Picture, c: Colors, b: Box, full: Map<string, number>): void {
  const left = toX(b.enter, p.span, p.width);
  const right = toX(b.exit, p.span, p.width);
  if (right < 0 || left > p.width) return;
  const track = p.placement.tracks[b.track];
  if (!track) return;
  const x = Math.max(left, -4);
  const w = Math.max(Math.min(right, p.width + 4) - x, 1);
  const row = `${b.track} ${b.row}`;
  const special = b.call.self === true || b.call.anomaly === true || boxKey(b) === p.selected;
  if (w <= 1 && !special) {
    if ((full.get(row) ?? -9) >= x) return; // hidden by other calls
    full.set(row, x + 1);
  }
  const y = track.top + b.row * rowHeight;
  const h = rowHeight - 1;
  const wide = Math.max(w - (w > 3 ? 1 : 0), 1);
  outline(paper, b, x, y, wide, h, right <= p.width + 4);
  const hue = functionFill(b.call.function, b.call.group, p.theme);
  const anomaly = b.call.anomaly === true;
  paper.globalAlpha = b.call.self === true ? 1 : anomaly ? 0.9 : b.call.open === true ? 0.5 : 1;
  paper.fillStyle = anomaly ? c.bad : hue;
  paper.fill();
  paper.globalAlpha = 1;
  if (anomaly && w > 7) {
    if (b.call.self !== true) hatch(paper, c.panel, x, y, wide, h);
    paper.fillStyle = hue; // keep the color visible at the left edge
    paper.fillRect(x, y, 3, h);
  }
  drawFrame(paper, p, c, b, { x, y, w: wide, h });
  drawName(paper, c, b, { x, y, w: wide, h });
}

interface Rect {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** The outline of a call, torn at the right if the call had not ended. */
function outline(
  paper: Paper,
  b: Box,
  x: number,
  y: number,
  w: number,
  h: number,
  ends: boolean,
): void {
  paper.beginPath();
  paper.moveTo(x, y);
  if (b.call.open === true && ends && w > 8) {
    const teeth = 4;
    for (let i = 0; i <= teeth * 2; i++) {
      paper.lineTo(x + w - (i % 2 === 0 ? 0 : 5), y + (h * i) / (teeth * 2));
    }
  } else {
    paper.lineTo(x + w, y);
    paper.lineTo(x + w, y + h);
  }
  paper.lineTo(x, y + h);
  paper.closePath();
}

function hatch(paper: Paper, color: string, x: number, y: number, w: number, h: number): void {
  paper.save();
  paper.beginPath();
  paper.rect(x, y, w, h);
  paper.clip();
  paper.strokeStyle = color;
  paper.globalAlpha = 0.28;
  paper.lineWidth = 2;
  paper.beginPath();
  for (let at = Math.floor(x / 8) * 8 - h; at < x + w; at += 8) {
    paper.moveTo(at, y + h);
    paper.lineTo(at + h, y);
  }
  paper.stroke();
  paper.restore();
}

function drawFrame(paper: Paper, p: Picture, c: Colors, b: Box, r: Rect): void {
  const key = boxKey(b);
  const chosen = key === p.selected;
  if (b.call.self !== true && !chosen && key !== p.hovered) return;
  paper.strokeStyle = chosen ? c.accent : c.ink;
  paper.lineWidth = b.call.self === true || chosen ? 2 : 1;
  paper.strokeRect(r.x, r.y, Math.max(r.w, 2), r.h);
}

function drawName(paper: Paper, c: Colors, b: Box, r: Rect): void {
  const x = Math.max(r.x, 0);
  const room = r.x + r.w - x - 10;
  if (room < 18) return;
  const name =
    (b.folded > 0 ? `${b.folded} callers › ` : '') + bare(b.call.label ?? b.call.function);
  const text = cutText(paper, name, room);
  if (text === '') return;
  paper.fillStyle = b.call.anomaly === true ? c.text : c.ink;
  paper.fillText(text, x + 6, r.y + r.h / 2 + 0.5);
}

function drawLink(paper: Paper, p: Picture, c: Colors, l: Link): void {
  const [x1, x2] = [toX(l.from, p.span, p.width), toX(l.to, p.span, p.width)];
  if (Math.max(x1, x2) < -9 || Math.min(x1, x2) > p.width + 9) return;
  const launch = l.arrow.kind === 'launch';
  const color = launch ? c.gpu : c.mpi;
  paper.strokeStyle = color;
  paper.fillStyle = color;
  paper.lineWidth = launch ? 2 : 1;
  paper.beginPath();
  paper.moveTo(x1, l.fromY);
  paper.lineTo(x2, l.toY);
  paper.stroke();
  const angle = Math.atan2(l.toY - l.fromY, x2 - x1);
  const size = launch ? 8 : 6;
  paper.beginPath();
  paper.moveTo(x2, l.toY);
  for (const side of [0.42, -0.42]) {
    paper.lineTo(x2 - size * Math.cos(angle + side), l.toY - size * Math.sin(angle + side));
  }
  paper.fill();
}
