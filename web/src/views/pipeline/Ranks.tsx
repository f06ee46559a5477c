import { useMemo } from 'react';
import type { Node, Query, Rank, Status } from '../../api/index.ts';
import { count, seconds } from '../../format/index.ts';
import { go, text, useParam } from '../../route/index.ts';
import { Failure, Table, Waiting, type Column } from '../../ui/index.ts';

const worstFirst = text('-rankstate');

type Row = Rank & { trouble: number };

/** All ranks with their delay. */
export function Ranks({ result, nodes }: { result: Query<Status>; nodes: readonly Node[] }) {
  const [sort, setSort] = useParam('ranksort', worstFirst);
  const ranks = result.data?.ranks;
  const rows = useMemo(() => {
    const silent = new Set(nodes.filter((n) => n.state === 'silent').map((n) => n.name));
    return (ranks ?? []).map((r) => ({
      ...r,
      trouble: r.ended ? 0 : silent.has(r.node ?? '') ? 2 : r.behind_seconds > 10 ? 1 : 0,
    }));
  }, [ranks, nodes]);
  if (!result.data) {
    if (result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
    return <Waiting label="loading the ranks" />;
  }
  return (
    <Table<Row>
      name="ranks"
      label="Ranks, problems first"
      main
      columns={columns}
      rows={rows}
      rowKey={(r) => `${r.program}:${r.rank}`}
      rowClass={(r) => (r.trouble === 2 ? 'is-bad' : r.trouble === 1 ? 'is-watch' : '')}
      sort={sort}
      onSort={setSort}
      onOpen={(r) => go({ view: 'findings', query: { rank: r.rank, program: r.program } })}
      empty="No ranks yet."
    />
  );
}

const stateWords = ['reading', 'behind', 'analyzer silent'];

const columns: Column<Row>[] = [
  {
    id: 'rankstate',
    header: 'State',
    value: (r) => r.trouble,
    cell: (r) => <span className="state">{r.ended ? 'ended' : stateWords[r.trouble]}</span>,
  },
  { id: 'program', header: 'Program', align: 'right', value: (r) => r.program },
  { id: 'rank', header: 'Rank', align: 'right', value: (r) => r.rank },
  { id: 'host', header: 'Host', value: (r) => r.host },
  { id: 'node', header: 'Analyzer', grow: true, value: (r) => r.node },
  {
    id: 'step',
    header: 'Step',
    title: 'Last step read',
    align: 'right',
    value: (r) => r.step,
    cell: (r) => count(r.step),
  },
  {
    id: 'behind',
    header: 'Behind',
    title: 'Age of the newest unread data of the rank',
    align: 'right',
    unit: 's',
    value: (r) => r.behind_seconds,
    cell: (r) => seconds(r.behind_seconds),
  },
  {
    id: 'anomalies',
    header: 'Anomalies',
    title: 'Flagged during the run',
    align: 'right',
    value: (r) => r.anomalies,
    cell: (r) => count(r.anomalies),
  },
];
