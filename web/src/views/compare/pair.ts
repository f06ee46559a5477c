// Which two runs are compared, and how changes are told. This file is pure.
import type { Comparable, Comparables, FlameNode, FlamePairNode, Pair } from '../../api/index.ts';
import { duration } from '../../format/index.ts';

/** The kinds of changes, in the order of the chips. */
export const kinds = ['new', 'worse', 'better', 'gone', 'same'] as const;

export const kindText: Readonly<Record<string, string>> = {
  new: 'in B alone',
  worse: 'more than a tenth more in B',
  better: 'more than a tenth less in B',
  gone: 'in A alone',
  same: 'changed by less than a tenth',
  differs: 'not the same in A and B',
};

/** The runs that are compared: those of the address, or the run of the page with its usual one. */
export function chosenPair(
  list: Comparables,
  run: string,
  a: string | undefined,
  b: string | undefined,
): { a: string | undefined; b: string } {
  const second = b ?? `0:${run}`;
  const usual = list.usual !== undefined && list.usual !== second ? list.usual : undefined;
  return { a: a ?? usual ?? list.rows.find((r) => r.id !== second)?.id, b: second };
}

/** What a run is called in a list: its name, and where it is if that is elsewhere. */
export function runText(r: Comparable): string {
  const kind = r.baseline ? 'baseline ' : '';
  return r.where === undefined || r.where === r.name
    ? `${kind}${r.name}`
    : `${kind}${r.name} (${r.where})`;
}

/** How the same is asked in a terminal. */
export function command(a: Comparable | undefined, b: Comparable | undefined, more = ''): string {
  const text = (r: Comparable | undefined) => {
    const t = r?.where ?? r?.name ?? 'RUN';
    return /^[\w./:@=+-]+$/.test(t) ? t : `'${t.replaceAll("'", `'\\''`)}'`;
  };
  return `chimbuko diff ${text(a)} ${text(b)}${more}`;
}

/** A change with its sign: +4.71 ms. */
export function signed(us: number): string {
  return us > 0 ? `+${duration(us)}` : duration(us);
}

/** A change of a pair from −1 (gone) over 0 (the same) to 1 (new). */
export function relative([a, b]: Pair<number>): number {
  const most = Math.max(a, b);
  return most > 0 ? (b - a) / most : 0;
}

/** The tree of one of the runs, and what its nodes are in both. */
export function oneSide(
  root: FlamePairNode,
  side: 0 | 1,
): { root: FlameNode; both: ReadonlyMap<FlameNode, FlamePairNode>; hidden: number } {
  const both = new Map<FlameNode, FlamePairNode>();
  let hidden = 0;
  const make = (n: FlamePairNode): FlameNode => {
    const children = n.children.filter((c) => c.total_us[side] > 0);
    hidden += n.children.length - children.length;
    const node: FlameNode = {
      function: n.function,
      group: n.group,
      self_us: n.self_us[side],
      total_us: n.total_us[side],
      calls: n.calls[side],
      children: children.map(make),
    };
    both.set(node, n);
    return node;
  };
  return { root: make(root), both, hidden };
}

/** A color between two others, of the form #rrggbb. */
export function mix(from: string, to: string, part: number): string {
  const channel = (c: string, i: number) => parseInt(c.slice(i, i + 2), 16) || 0;
  const text = [1, 3, 5].map((i) => {
    const v = channel(from, i) + (channel(to, i) - channel(from, i)) * part;
    return Math.round(v).toString(16).padStart(2, '0');
  });
  return `#${text.join('')}`;
}
