import type { Finding } from '../../api/index.ts';
import { kindVar } from '../../color/index.ts';
import { bare, count, duration, names, pathTail } from '../../format/index.ts';
import { CallPath, FunctionName, Kind, Sparkline, When, type Column } from '../../ui/index.ts';
import { RankStrip, where } from './RankStrip.tsx';

const statusWords: Readonly<Record<string, string>> = {
  warming: 'few samples: may be wrong',
  provisional: 'reviewed when the run ends',
  confirmed: 'confirmed by the final model',
  withdrawn: 'usual by the final model',
};

const trendMarks: Readonly<Record<string, string>> = { more: '↗', fewer: '↘', steady: '→' };

/** The columns of the finding table. */
export function findingColumns(totalRanks: number): Column<Finding>[] {
  return [
    {
      id: 'finding',
      header: '#',
      title: 'Rank by cost: 1 is the costliest',
      value: (i) => i.finding,
      width: 56,
    },
    {
      id: 'lost',
      header: 'Lost',
      title: 'Time beyond the usual, including the waits it caused',
      align: 'right',
      value: (i) => i.lost_us,
      cell: (i) => (
        <span
          title={
            i.lost_caused_us > 0
              ? `${duration(i.lost_own_us)} own, ${duration(i.lost_caused_us)} in waits on ${count(i.wait_ranks)} ranks`
              : `${duration(i.lost_us)} beyond the usual`
          }
        >
          <strong>{duration(i.lost_us)}</strong>
        </span>
      ),
    },
    {
      id: 'count',
      header: 'Count',
      title: 'Affected calls',
      align: 'right',
      value: (i) => i.calls,
      cell: (i) => count(i.calls),
    },
    { id: 'kind', header: 'Kind', value: (i) => i.kind, cell: (i) => <Kind kind={i.kind} /> },
    {
      id: 'function',
      header: 'Function',
      value: (i) => bare(i.function),
      cell: (i) =>
        i.function === '' ? 'whatever runs' : <FunctionName name={i.function} most={44} />,
    },
    {
      id: 'path',
      header: 'Called by',
      title: 'End of the call path',
      grow: true,
      value: (i) => pathTail(i.call_path.split(' > ').slice(0, -1), 3),
      cell: (i) => <CallPath path={i.call_path.split(' > ').slice(0, -1)} />,
    },
    {
      id: 'ranks',
      header: 'Ranks',
      value: (i) => i.rank_count,
      cell: (i) => (
        <span className="ranks-cell" title={where(i).full}>
          <RankStrip ranks={i.ranks} total={totalRanks} color={kindVar(i.kind)} /> {where(i).short}
        </span>
      ),
    },
    {
      id: 'hosts',
      header: 'Hosts',
      value: (i) => i.hosts.join(' '),
      cell: (i) => <span title={i.hosts.join('\n')}>{names(i.hosts, 1)}</span>,
    },
    {
      id: 'first',
      header: 'First seen',
      align: 'right',
      value: (i) => i.from_s,
      cell: (i) => <When s={i.from_s} />,
    },
    {
      id: 'last',
      header: 'Last seen',
      align: 'right',
      hidden: true,
      value: (i) => i.last_s,
      cell: (i) => <When s={i.last_s} />,
    },
    {
      id: 'trend',
      header: 'Over time',
      title: 'Anomalies over the run, and their trend',
      value: (i) => i.trend ?? '',
      cell: (i) => (
        <span className="trend-cell">
          <Sparkline
            values={i.over_time}
            label={`${count(i.calls)} anomalies over the run`}
            color={kindVar(i.kind)}
            width={84}
            height={16}
          />
          <span title={i.trend ? `trend: ${i.trend}` : 'too few for a trend'}>
            {trendMarks[i.trend ?? ''] ?? ''}
          </span>
        </span>
      ),
    },
    {
      id: 'longest',
      header: 'Longest',
      align: 'right',
      hidden: true,
      value: (i) => i.longest_us,
      cell: (i) => duration(i.longest_us),
    },
    { id: 'program', header: 'Program', align: 'right', hidden: true, value: (i) => i.program },
    {
      id: 'expected',
      header: 'Expected',
      title: 'Median of unaffected calls',
      align: 'right',
      hidden: true,
      value: (i) => i.expected_us,
      cell: (i) => duration(i.expected_us),
    },
    {
      id: 'actual',
      header: 'Actual',
      title: 'Median of affected calls; of interference, the median delay',
      align: 'right',
      hidden: true,
      value: (i) => i.actual_us,
      cell: (i) => duration(i.actual_us),
    },
    {
      id: 'status',
      header: 'Status',
      value: (i) => i.label?.state ?? i.status,
      cell: (i) => (
        <span
          className={`confidence ${i.status}`}
          title={i.label && i.label.state !== 'open' ? i.label.note : statusWords[i.status]}
        >
          {i.label && i.label.state !== 'open' ? i.label.state : i.status}
          {i.severity === 'info' && i.status !== 'withdrawn' ? ', info' : ''}
        </span>
      ),
    },
  ];
}
