import { useMemo, useState } from 'react';
import type { FunctionRank } from '../../api/index.ts';
import { count, duration, plural } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { Part } from './Detail.tsx';

const few = 8;

/** Hosts by lost time. */
export function byHost(
  ranks: readonly FunctionRank[],
): { host: string; lost: number; n: number }[] {
  const sums = new Map<string, { host: string; lost: number; n: number }>();
  for (const r of ranks) {
    const sum = sums.get(r.host) ?? { host: r.host, lost: 0, n: 0 };
    sum.lost += r.lost_us;
    sum.n++;
    sums.set(r.host, sum);
  }
  return [...sums.values()].sort((a, b) => b.lost - a.lost);
}

/** Lost time by rank: a strip of all ranks and a list of the worst. */
export function RankBars({
  ranks,
  anomalies,
  name,
}: {
  ranks: readonly FunctionRank[];
  anomalies: number;
  name: string;
}) {
  const href = useHref();
  const [all, setAll] = useState(false);
  const worst = useMemo(() => [...ranks].sort((a, b) => b.lost_us - a.lost_us), [ranks]);
  const hosts = useMemo(() => byHost(ranks), [ranks]);
  if (ranks.length === 0) {
    return anomalies > 0 ? null : (
      <Part title="Ranks">
        <p className="muted">No rank has anomalies.</p>
      </Part>
    );
  }
  const most = Math.max(worst[0]?.lost_us ?? 0, 1);
  const shown = all ? worst : worst.slice(0, few);
  return (
    <Part
      title="Ranks by lost time"
      note={`${plural(ranks.length, 'rank')} on ${plural(hosts.length, 'host')}`}
      figure={`Lost time of ${name} by rank`}
    >
      {ranks.length > few && <Strip ranks={ranks} most={most} />}
      <ul className="function-paths">
        {shown.map((r) => (
          <li key={r.rank}>
            <span className="amount" style={{ width: `${(r.lost_us / most) * 100}%` }} />
            <span className="cut">
              <a href={href({ view: 'findings', query: { rank: r.rank } })}>rank {r.rank}</a>{' '}
              <a className="muted" href={href({ view: 'findings', query: { host: r.host } })}>
                {r.host}
              </a>
            </span>
            <span className="nowrap" title={`longest ${duration(r.longest_us)}`}>
              {duration(r.lost_us)}, {plural(r.anomalies, 'anomaly', 'anomalies')}
            </span>
          </li>
        ))}
      </ul>
      {ranks.length > few && (
        <button type="button" className="button quiet" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show ${count(ranks.length)}`}
        </button>
      )}
    </Part>
  );
}

/** A strip of all ranks in order. */
function Strip({ ranks, most }: { ranks: readonly FunctionRank[]; most: number }) {
  const width = 356;
  const height = 28;
  const [first, last] = ranks.reduce(
    ([a, b], r) => [Math.min(a, r.rank), Math.max(b, r.rank)],
    [Infinity, 0],
  );
  const step = width / (last - first + 1);
  return (
    <svg
      className="function-ranks"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Lost time of ranks ${first} to ${last}; the worst are listed below`}
    >
      {ranks.map((r) => {
        const h = Math.max(2, (r.lost_us / most) * height);
        return (
          <rect
            key={r.rank}
            x={(r.rank - first) * step}
            y={height - h}
            width={Math.max(step - (step > 3 ? 1 : 0), 0.8)}
            height={h}
          >
            <title>{`rank ${r.rank} (${r.host}): ${duration(r.lost_us)}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}
