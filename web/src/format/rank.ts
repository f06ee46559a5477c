/** Formats ranks as ranges, as in 0-3,7, and counts those beyond the first parts. */
export function ranks(list: readonly number[], parts = 4): string {
  const sorted = [...new Set(list)].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const r of sorted) {
    const last = ranges.at(-1);
    if (last?.[1] === r - 1) last[1] = r;
    else ranges.push([r, r]);
  }
  const text = ranges.slice(0, parts).map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`));
  const left = ranges.slice(parts).reduce((n, [a, b]) => n + b - a + 1, 0);
  return text.join(',') + (left > 0 ? `, +${left}` : '');
}

/** Reports whether a rank is in a list such as 0,4-7. An empty list contains all. */
export function hasRank(text: string, rank: number): boolean {
  if (text.trim() === '') return true;
  return text.split(',').some((part) => {
    const m = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part);
    if (!m) return false;
    const from = Number(m[1]);
    return rank >= from && rank <= Number(m[2] ?? from);
  });
}

/** Formats the first names and counts the rest: nid00123, nid00124, +6. */
export function names(list: readonly string[], most = 2): string {
  const left = list.length - most;
  return list.slice(0, most).join(', ') + (left > 0 ? `, +${left}` : '');
}

/** The hosts and ranks of a finding: node01 · ranks 4-7. A finding without ranks concerns all of them. */
export function place(i: {
  ranks: readonly number[];
  rank_count: number;
  hosts: readonly string[];
}): string {
  if (i.rank_count === 0) return 'all ranks';
  const more = i.rank_count > i.ranks.length ? ` of ${i.rank_count}` : '';
  const where = `${i.rank_count === 1 ? 'rank' : 'ranks'} ${ranks(i.ranks, 3)}${more}`;
  return i.hosts.length === 0 ? where : `${names(i.hosts)} · ${where}`;
}
