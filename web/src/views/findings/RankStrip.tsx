import { count, names, ranks } from '../../format/index.ts';

/** The affected ranks as marks on a line. */
export function RankStrip(props: { ranks: readonly number[]; total: number; color: string }) {
  const width = 72;
  const total = Math.max(props.total, ...props.ranks.map((r) => r + 1), 1);
  const step = width / total;
  const path = props.ranks
    .map(
      (r) =>
        `M${(r * step).toFixed(2)} 1h${Math.max(step - (step > 4 ? 1 : 0), 1).toFixed(2)}v8h-${Math.max(step - (step > 4 ? 1 : 0), 1).toFixed(2)}z`,
    )
    .join('');
  return (
    <svg width={width} height="10" className="rank-strip" aria-hidden="true">
      <rect width={width} height="10" fill="var(--hover)" rx="1" />
      <path d={path} fill={props.color} />
    </svg>
  );
}

/** A summary of ranks and hosts, with all in the tooltip. */
export function where(i: {
  ranks: number[];
  rank_count: number;
  hosts: string[];
  host_count: number;
}): {
  short: string;
  full: string;
} {
  if (i.rank_count === 0) return { short: 'all', full: 'all ranks' };
  const more = i.rank_count > i.ranks.length ? ` of ${count(i.rank_count)} ranks` : '';
  return {
    short: `${ranks(i.ranks, 2)}${more}`,
    full: `ranks ${ranks(i.ranks, 40)}${more}\nhosts ${names(i.hosts, 40)}`,
  };
}
