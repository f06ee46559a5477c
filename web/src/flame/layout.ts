// Where the functions of a flame graph are. This file is pure.

import type { FlameNode } from '../api/index.ts';
import { hash } from '../color/index.ts';

/** A function below its callers. Left and right are parts of the whole, from 0 to 1. */
export interface Cell {
  node: FlameNode;
  /** Short, and the same for the same call path. */
  key: string;
  depth: number;
  left: number;
  right: number;
  parent: Cell | undefined;
  children: readonly Cell[];
}

/** All cells, the root first, each before those below it. */
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

/** A cell where it is seen, when another one fills the width. */
export interface Seen {
  cell: Cell;
  x: number;
  width: number;
  /** It is around the one that fills the width. */
  outer: boolean;
}

/**
 * What is seen while a cell fills the width: its callers, as wide as itself, and all
 * below it. Cells that are narrower than so many pixels are left out, with those below.
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

/** How many levels there are from the root to the deepest cell below one. */
export function levels(focus: Cell): number {
  return focus.children.reduce((n, c) => Math.max(n, levels(c)), focus.depth + 1);
}

/** Whether a name has all words of a text. An empty text has none. */
export function matchesName(name: string, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const low = name.toLowerCase();
  return words.length > 0 && words.every((w) => low.includes(w));
}

/** Cells whose names have the words of a text, and the time in them, each time once. */
export function search(cells: readonly Cell[], text: string): { found: Set<Cell>; time: number } {
  const found = new Set<Cell>();
  let time = 0;
  for (const c of cells) {
    if (c.parent === undefined || !matchesName(c.node.function, text)) continue;
    found.add(c);
    let outer = c.parent as Cell | undefined;
    while (outer && !found.has(outer)) outer = outer.parent;
    if (!outer) time += c.node.total_us;
  }
  return { found, time };
}

/** The cell that arrows lead to. */
export function neighbor(cell: Cell, key: string, focus: Cell): Cell | undefined {
  if (key === 'ArrowUp') return cell.parent;
  if (key === 'ArrowDown') return cell.children[0];
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return undefined;
  if (cell === focus) return undefined;
  const same = cell.parent?.children ?? [];
  const next = same[same.indexOf(cell) + (key === 'ArrowLeft' ? -1 : 1)];
  if (next || !cell.parent) return next;
  // Beyond the last of a caller comes the first of the next caller, if that has one.
  const uncle = neighbor(cell.parent, key, focus);
  return key === 'ArrowLeft' ? uncle?.children.at(-1) : uncle?.children[0];
}

/** A function with all its places in the tree together. */
export interface Sum {
  name: string;
  group: string;
  self: number;
  /** With what it calls; a function that calls itself is counted once. */
  total: number;
  calls: number;
}

/** Functions by their own time, most first. */
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
