// Selection of the two runs and wording of changes. This file has no side effects.
import type { Comparable, Comparables, FlameNode, FlamePairNode, Pair } from '../../api/index.ts';
import { duration } from '../../format/index.ts';

/** The kinds of changes in display order. */
export const kinds = ['new', 'worse', 'better', 'gone', 'same'] as const;

export const kindText: Readonly<Record<string, string>> = {
  new: 'only in B',
  worse: 'over 10 % more in B',
  better: 'over 10 % less in B',
  gone: 'only in A',
  same: 'changed by less than 10 %',
  differs: 'different in A and B',
};

/** The compared runs: those in the address, or the current run and its default reference. */
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

/** Label of a run: its name, and its location if elsewhere. */
export function runText(r: Comparable): string {
  const kind = r.baseline ? 'baseline ' : '';
  return r.where === undefined || r.where === r.name
    ? `${kind}${r.name}`
    : `${kind}${r.name} (${r.where})`;
}

/** The equivalent terminal command. */
export function command(a: Comparable | undefined, b: Comparable | undefined, more = ''): string {
  const text = (r: Comparable | undefined) => {
    const t = r?.where ?? r?.name ?? 'RUN';
    return /^[\w./:@=+-]+$/.test(t) ? t : `'${t.replaceAll("'", `'\\''`)}'`;
  };
  return `chimbuko diff ${text(a)} ${text(b)}${more}`;
}

/** Formats a signed change: +4.71 ms. */
export function signed(us: number): string {
  return us > 0 ? `+${duration(us)}` : duration(us);
}

/** Relative change of a pair: −1 is gone, 0 the same, 1 new. */
export function relative([a, b]: Pair<number>): number {
  const most = Math.max(a, b);
  return most > 0 ? (b - a) / most : 0;
}

/** The tree of one run, and the values of its nodes in both. */
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

/** Blends two #rrggbb colors. */
export function mix(from: string, to: string, part: number): string {
  const channel = (c: string, i: number) => parseInt(c.slice(i, i + 2), 16) || 0;
  const text = [1, 3, 5].map((i) => {
    const v = channel(from, i) + (channel(to, i) - channel(from, i)) * part;
    return Math.round(v).toString(16).padStart(2, '0');
  });
  return `#${text.join('')}`;
}
