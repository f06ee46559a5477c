// Layout of flame graphs. This file has no side effects.

import type { FlameNode } from '../api/index.ts';
import { hash } from '../color/index.ts';

/** A function on a call path. Left and right are fractions of the total width. */
export interface Cell {
  node: FlameNode;
  /** A short hash of the call path. */
  key: string;
  depth: number;
  left: number;
  right: number;
  parent: Cell | undefined;
  children: readonly Cell[];
}

/** All cells in pre-order. */
export function cellsOf(root: FlameNode): Cell[] {
  const all: Cell[] = [];
  const whole = root.total_us > 0 ? root.total_us : 1;
  const add = (node: FlameNode, parent: Cell | undefined, path: string, left: number): Cell => {
    const text = `${path}\u0001${node.function}`;
    const children: Cell[] = [];
    const cell: Cell = {
      node,
      key: hash(text).toString(36),
      depth: parent ? parent.depth + 1 : 0,
      left,
      right: left + Math.max(0, node.total_us) / whole,
      parent,
      children,
    };
    all.push(cell);
    let at = left;
    for (const child of node.children) {
      const made = add(child, cell, text, at);
      children.push(made);
      at = made.right;
    }
    return cell;
  };
  add(root, undefined, '', 0);
  return all;
}

/** A visible cell at the current zoom. */
export interface Seen {
  cell: Cell;
  x: number;
  width: number;
  /** Whether it is a caller of the zoomed cell. */
  outer: boolean;
}

/**
 * The visible cells when zoomed to a cell: its callers at full width, and all cells below it. Omits cells narrower than a number of pixels and those below them.
 */
export function seenFrom(focus: Cell, width: number, least = 0.6): Seen[] {
  const seen: Seen[] = [];
  for (let c = focus.parent; c; c = c.parent) seen.unshift({ cell: c, x: 0, width, outer: true });
  const size = focus.right - focus.left;
  const scale = size > 0 ? width / size : 0;
  const down = (c: Cell) => {
    const wide = c === focus ? width : (c.right - c.left) * scale;
    if (wide < least) return;
    seen.push({ cell: c, x: (c.left - focus.left) * scale, width: wide, outer: false });
    for (const child of c.children) down(child);
  };
  down(focus);
  return seen;
}

/** Levels from the root to the deepest cell below a cell. */
export function levels(focus: Cell): number {
  return focus.children.reduce((n, c) => Math.max(n, levels(c)), focus.depth + 1);
}

/** Reports whether a name contains all words of a text; false for an empty text. */
export function matchesName(name: string, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const low = name.toLowerCase();
  return words.length > 0 && words.every((w) => low.includes(w));
}

/** Cells that match a text, and their total time without double counting. */
export function search(cells: readonly Cell[], text: string): { matches: Set<Cell>; time: number } {
  const matches = new Set<Cell>();
  let time = 0;
  for (const c of cells) {
    if (c.parent === undefined || !matchesName(c.node.function, text)) continue;
    matches.add(c);
    let outer = c.parent as Cell | undefined;
    while (outer && !matches.has(outer)) outer = outer.parent;
    if (!outer) time += c.node.total_us;
  }
  return { matches, time };
}

/** The cell that an arrow key leads to. */
export function neighbor(cell: Cell, key: string, focus: Cell): Cell | undefined {
  if (key === 'ArrowUp') return cell.parent;
  if (key === 'ArrowDown') return cell.children[0];
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return undefined;
  if (cell === focus) return undefined;
  const same = cell.parent?.children ?? [];
  const next = same[same.indexOf(cell) + (key === 'ArrowLeft' ? -1 : 1)];
  if (next || !cell.parent) return next;
  // After the last callee continue with the first callee of the next caller.
  const uncle = neighbor(cell.parent, key, focus);
  return key === 'ArrowLeft' ? uncle?.children.at(-1) : uncle?.children[0];
}

/** A function summed over the tree. */
export interface Sum {
  name: string;
  group: string;
  self: number;
  /** Inclusive time; recursive calls count once. */
  total: number;
  calls: number;
}

/** Functions by own time, descending. */
export function sums(cells: readonly Cell[]): Sum[] {
  const byName = new Map<string, Sum>();
  for (const c of cells) {
    if (c.parent === undefined) continue;
    const name = c.node.function;
    const sum = byName.get(name) ?? { name, group: c.node.group, self: 0, total: 0, calls: 0 };
    byName.set(name, sum);
    sum.self += c.node.self_us;
    sum.calls += c.node.calls;
    let outer: Cell | undefined = c.parent;
    while (outer && outer.node.function !== name) outer = outer.parent;
    if (!outer) sum.total += c.node.total_us;
  }
  return [...byName.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}
