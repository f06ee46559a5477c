// Draws a flame graph on a canvas, from the root at the top down.

import { functionFill, token } from '../color/index.ts';
import { bare } from '../format/index.ts';
import { cutText, type Paper } from '../ui/index.ts';
import type { Cell, Seen } from './layout.ts';

export const rowHeight = 22;

export interface Picture {
  seen: readonly Seen[];
  width: number;
  height: number;
  /** Search matches; undefined without a search. */
  matches: ReadonlySet<Cell> | undefined;
  chosen: Cell | undefined;
  hovered: Cell | undefined;
  theme: 'dark' | 'light';
  /** Overrides the color of a cell. */
  fill?: ((cell: Cell) => string) | undefined;
}

/** Draws the flame graph. */
export function paint(paper: Paper, p: Picture): void {
  const ink = token('ink');
  const ink3 = token('ink-3');
  const accent = token('accent');
  const plain = token('hover');
  paper.clearRect(0, 0, p.width, p.height);
  paper.font = '11px system-ui, sans-serif';
  paper.textBaseline = 'middle';
  for (const s of p.seen) {
    const { node } = s.cell;
    const y = s.cell.depth * rowHeight;
    const w = Math.max(s.width - (s.width > 3 ? 1 : 0), 0.5);
    const h = rowHeight - 1;
    const dim = p.matches !== undefined && !p.matches.has(s.cell);
    const neutral = s.cell.parent === undefined || dim || isNoFunction(node.function);
    paper.globalAlpha = s.outer ? 0.5 : 1;
    paper.fillStyle = neutral
      ? plain
      : (p.fill?.(s.cell) ?? functionFill(node.function, node.group, p.theme));
    paper.fillRect(s.x, y, w, h);
    paper.globalAlpha = 1;
    if (w > 24) {
      paper.fillStyle = dim ? ink3 : ink;
      paper.fillText(cutText(paper, bare(node.function), w - 10), s.x + 5, y + h / 2 + 0.5);
    }
    if (s.cell === p.chosen || s.cell === p.hovered) {
      paper.strokeStyle = s.cell === p.chosen ? accent : ink;
      paper.lineWidth = s.cell === p.chosen ? 2 : 1;
      paper.strokeRect(s.x + 0.5, y + 0.5, Math.max(w - 1, 1), h - 1);
    }
  }
}

/** Matches cells that group programs or functions with an unknown call path. */
function isNoFunction(name: string): boolean {
  return /^(\(.*\)|program \d+)$/.test(name);
}
