import type { Finding } from '../../api/index.ts';
import { kindVar } from '../../color/index.ts';
import { bare, count, duration, hasRank, names, pathTail, plural } from '../../format/index.ts';
import { CallPath, FindingSpark, FunctionName, Kind, When, type Column } from '../../ui/index.ts';
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
      id: 'own',
      header: 'Own',
      term: 'own',
      title: 'Lost time of its calls: beyond the usual',
      align: 'right',
      unit: 'us',
      value: (i) => i.lost_own_us,
      cell: (i) => duration(i.lost_own_us),
    },
    {
      id: 'caused',
      header: 'Caused',
      term: 'caused',
      title: 'Lost time of the calls that waited because of it',
      align: 'right',
      unit: 'us',
      value: (i) => i.lost_caused_us,
      cell: (i) => (
        <span
          title={
            i.lost_caused_us > 0
              ? `${count(i.waits)} waits on ${plural(i.wait_ranks ?? 0, 'rank')}`
              : undefined
          }
        >
          {duration(i.lost_caused_us)}
        </span>
      ),
    },
    {
      id: 'lost',
      header: 'Total',
      term: 'total',
      title: 'Lost time: own and caused',
      align: 'right',
      unit: 'us',
      value: (i) => i.lost_us,
      cell: (i) => <strong>{duration(i.lost_us)}</strong>,
    },
    {
      id: 'count',
      header: 'Count',
      title: 'Affected calls',
      align: 'right',
      value: (i) => i.calls,
      cell: (i) => count(i.calls),
    },
    {
      id: 'kind',
      header: 'Kind',
      term: 'kind',
      value: (i) => i.kind,
      cell: (i) => <Kind kind={i.kind} />,
    },
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
      match: (i, text) => i.ranks.some((r) => hasRank(text, r)),
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
      unit: 's',
      value: (i) => i.from_s,
      cell: (i) => <When s={i.from_s} />,
    },
    {
      id: 'last',
      header: 'Until',
      title: 'End of the last affected call; ongoing if it lasts to the end of the run',
      align: 'right',
      unit: 's',
      value: (i) => i.to_s ?? Infinity,
      cell: (i) => (i.to_s === null ? 'ongoing' : <When s={i.to_s} />),
    },
    {
      id: 'trend',
      header: 'Over time',
      title: 'Affected calls over the whole run, and their trend',
      value: (i) => i.trend ?? '',
      cell: (i) => (
        <span className="trend-cell">
          <FindingSpark finding={i} width={84} height={16} />
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
      unit: 'us',
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
      unit: 'us',
      value: (i) => i.expected_us,
      cell: (i) => duration(i.expected_us),
    },
    {
      id: 'actual',
      header: 'Actual',
      title: 'Median of affected calls; of interference, the median delay',
      align: 'right',
      hidden: true,
      unit: 'us',
      value: (i) => i.actual_us,
      cell: (i) => duration(i.actual_us),
    },
    {
      id: 'status',
      header: 'Status',
      term: 'status',
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
