import type { RankRow } from '../../api/index.ts';
import { count, duration, hasRank, unknown } from '../../format/index.ts';
import type { Column } from '../../ui/index.ts';
import { patternText, ratioText, share } from './ratio.ts';

/** Useful and wait time of a row as bars, with the time lost to findings below. most is the longest bar. */
export function TimeBars({ row, most }: { row: RankRow; most: number }) {
  const width = (us: number) => `${Math.min(100, (100 * us) / Math.max(most, 1))}%`;
  const lost = row.lost_us ?? 0;
  if (row.missing === row.ranks) return <span className="muted">no data</span>;
  return (
    <span
      className="time-bars"
      title={`useful ${duration(row.useful_us)}, waiting ${duration(row.wait_us)}${row.lost_us === null ? '' : `, lost to findings ${duration(lost)}`}`}
    >
      <span className="time-bar">
        <span className="useful" style={{ width: width(row.useful_us) }} />
        <span className="waiting-time" style={{ width: width(row.wait_us) }} />
      </span>
      <span className="time-bar thin">
        <span className="lost" style={{ width: width(lost) }} />
      </span>
    </span>
  );
}

/** Columns of the table of ranks. length is that of the run in seconds. */
export function rankColumns(by: string, most: number, length: number): Column<RankRow>[] {
  const groups = by === 'host' || by === 'role';
  const threads = by === 'thread' || by === 'device';
  return [
    {
      id: 'place',
      header: { host: 'Host', role: 'Role', thread: 'Thread', device: 'GPU' }[by] ?? 'Rank',
      value: (r) => r.place,
      ...(groups ? {} : { match: (r: RankRow, text: string) => hasRank(text, r.first_rank) }),
      cell: (r) => (
        <span className="rank-place">
          {r.place}
          {r.missing > 0 && (
            <span className="no-data" title="Ranks without data">
              {r.missing === r.ranks ? 'no data' : `${r.missing} of ${r.ranks} without data`}
            </span>
          )}
        </span>
      ),
    },
    { id: 'host', header: 'Host', hidden: by === 'host', value: (r) => r.host },
    { id: 'ranks', header: 'Ranks', align: 'right', hidden: !groups, value: (r) => r.ranks },
    {
      id: 'role',
      header: 'Role',
      title: 'Ranks with the same role make about as many calls of the same functions',
      align: 'right',
      hidden: by === 'role',
      value: (r) => r.role,
      cell: (r) => (r.role === 0 ? unknown : r.role),
    },
    { id: 'peers', header: 'Peers', align: 'right', value: (r) => r.peers },
    {
      id: 'ratio',
      header: 'Ratio',
      title: 'Time of the work divided by that of equal work of peers; the worst of a group',
      align: 'right',
      value: (r) => r.ratio ?? undefined,
      cell: (r) =>
        r.ratio === null ? (
          <span title="No peers, or no data">{unknown}</span>
        ) : (
          <span className={r.pattern === undefined ? '' : 'slow-ratio'}>{ratioText(r.ratio)}</span>
        ),
    },
    {
      id: 'pattern',
      header: 'Slow',
      title: 'When it is slower than its peers',
      value: (r) => patternText(r, length),
    },
    {
      id: 'saved',
      header: 'Would save',
      title: 'By how much the run would be shorter if it were like its peers',
      align: 'right',
      unit: 'us',
      value: (r) => r.saved_us,
      cell: (r) =>
        r.saved_us === 0 ? (
          <span className="muted">{unknown}</span>
        ) : (
          <span title={duration(r.saved_us)}>{share(r.saved_share)}</span>
        ),
    },
    {
      id: 'time',
      header: 'Useful, waiting, lost',
      title: 'Useful and waiting time, and below the time lost to findings',
      width: 200,
      unit: 'us',
      value: (r) => r.useful_us,
      cell: (r) => <TimeBars row={r} most={most} />,
    },
    {
      id: 'useful',
      header: 'Useful',
      align: 'right',
      unit: 'us',
      value: (r) => r.useful_us,
      cell: (r) => (r.missing === r.ranks ? unknown : duration(r.useful_us)),
    },
    {
      id: 'wait',
      header: 'Waiting',
      align: 'right',
      unit: 'us',
      value: (r) => r.wait_us,
      cell: (r) => (r.missing === r.ranks ? unknown : duration(r.wait_us)),
    },
    {
      id: 'lost',
      header: 'Lost',
      title: 'Time lost to findings',
      align: 'right',
      hidden: threads,
      unit: 'us',
      value: (r) => r.lost_us ?? undefined,
      cell: (r) => (r.lost_us === null ? unknown : duration(r.lost_us)),
    },
    {
      id: 'finding',
      header: 'Finding',
      align: 'right',
      value: (r) => r.finding,
      cell: (r) => (r.finding === undefined ? '' : `#${count(r.finding)}`),
    },
  ];
}
