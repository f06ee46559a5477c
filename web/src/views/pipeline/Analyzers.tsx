import { useMemo } from 'react';
import type { Node, Status } from '../../api/index.ts';
import { bytes, count, percent, rate, seconds } from '../../format/index.ts';
import { text, useParam } from '../../route/index.ts';
import { Table, type Column } from '../../ui/index.ts';
import { badness, busy, cpu, troubleOf } from './figures.ts';

const worstFirst = text('-state');

const words: Readonly<Record<string, string>> = {
  silent: 'silent',
  drops: 'dropped messages',
  behind: 'behind',
  waiting: 'outbox backlog',
};

/** All analyzers, problems first. */
export function Analyzers({ status }: { status: Status }) {
  const [sort, setSort] = useParam('sort', worstFirst);
  // Columns read the current time from the row.
  const rows = useMemo(
    () => (status.nodes ?? []).map((n) => ({ ...n, now: status.run.now })),
    [status],
  );
  return (
    <Table<Row>
      name="analyzers"
      label="Analyzers, problems first"
      main
      columns={columns}
      rows={rows}
      rowKey={(n) => n.name}
      rowClass={(n) => rowClass(troubleOf(n))}
      sort={sort}
      onSort={setSort}
      empty="No analyzer connected yet. Start chimbuko ad on each node."
    />
  );
}

/** The CSS class of a row by its problem. */
export function rowClass(trouble: string): string {
  return trouble === ''
    ? ''
    : trouble === 'waiting' || trouble === 'behind'
      ? 'is-watch'
      : 'is-bad';
}

type Row = Node & { now: string };

const columns: Column<Row>[] = [
  {
    id: 'state',
    header: 'State',
    title: 'Current state; problems first',
    value: badness,
    cell: (n) => (
      <span className={`state ${rowClass(troubleOf(n))}`} title={words[troubleOf(n)]}>
        {troubleOf(n) === '' || troubleOf(n) === 'silent'
          ? n.state
          : `${n.state}, ${words[troubleOf(n)] ?? ''}`}
      </span>
    ),
  },
  { id: 'host', header: 'Host', value: (n) => n.host },
  { id: 'name', header: 'Analyzer', value: (n) => n.name, grow: true },
  { id: 'pid', header: 'PID', align: 'right', hidden: true, value: (n) => n.pid },
  {
    id: 'ranks',
    header: 'Ranks',
    align: 'right',
    value: (n) => n.ranks,
    cell: (n) => count(n.ranks),
  },
  {
    id: 'lag',
    header: 'Behind',
    title: 'Age of the newest unread data',
    align: 'right',
    unit: 's',
    value: (n) => n.behind_seconds,
    cell: (n) => seconds(n.behind_seconds),
  },
  {
    id: 'busy',
    header: 'Busy',
    title:
      'Time spent on steps since connecting, in percent of one core; over 100 % with several workers',
    align: 'right',
    value: (n) => busy(n, n.now),
    cell: (n) => <span title={stages(n)}>{percent(busy(n, n.now))}</span>,
  },
  {
    id: 'events',
    header: 'Events/s',
    align: 'right',
    value: (n) => n.events_per_second,
    cell: (n) => (
      <span title={`${count(n.events)} in total: ${kinds(n)}`}>{rate(n.events_per_second)}</span>
    ),
  },
  {
    id: 'calls',
    header: 'Calls/s',
    align: 'right',
    hidden: true,
    value: (n) => n.calls_per_second,
    cell: (n) => rate(n.calls_per_second),
  },
  {
    id: 'anomalies',
    header: 'Anomalies',
    align: 'right',
    value: (n) => n.anomalies,
    cell: (n) => count(n.anomalies),
  },
  {
    id: 'outbox',
    header: 'Outbox',
    title: 'Messages waiting to be sent',
    align: 'right',
    value: (n) => n.outbox_messages,
    cell: (n) => <span title={bytes(n.outbox_bytes)}>{count(n.outbox_messages)}</span>,
  },
  {
    id: 'drops',
    header: 'Drops',
    title: 'Dropped messages',
    align: 'right',
    value: (n) => n.drops,
    cell: (n) => count(n.drops),
  },
  {
    id: 'exchange',
    header: 'Exchange',
    title: 'Mean time of an exchange with the parameter server, as measured by the analyzer',
    align: 'right',
    value: (n) => n.exchange?.mean_seconds,
    cell: (n) => (
      <span
        title={`p50 ${seconds(n.exchange?.p50_seconds)}, p99 ${seconds(n.exchange?.p99_seconds)}, max ${seconds(n.exchange?.max_seconds)}`}
      >
        {seconds(n.exchange?.mean_seconds)}
      </span>
    ),
  },
  {
    id: 'p99',
    header: 'p99',
    title: '99th percentile of recent exchange times',
    align: 'right',
    hidden: true,
    value: (n) => n.exchange?.p99_seconds,
    cell: (n) => seconds(n.exchange?.p99_seconds),
  },
  {
    id: 'read',
    header: 'Read',
    align: 'right',
    hidden: true,
    value: (n) => n.bytes_read,
    cell: (n) => bytes(n.bytes_read),
  },
  { id: 'open', header: 'Open calls', align: 'right', hidden: true, value: (n) => n.open_calls },
  {
    id: 'cpu',
    header: 'CPU',
    title: 'CPU time since connecting, in percent of one core',
    align: 'right',
    value: (n) => cpu(n, n.now),
    cell: (n) => percent(cpu(n, n.now)),
  },
  {
    id: 'rss',
    header: 'Memory',
    align: 'right',
    value: (n) => n.rss_bytes,
    cell: (n) => bytes(n.rss_bytes),
  },
];

function stages(n: Node): string {
  return (n.stages ?? [])
    .map((s) => `${s.name}: ${seconds(s.seconds)} in ${count(s.runs)} runs`)
    .join('\n');
}

function kinds(n: Node): string {
  return Object.entries(n.event_kinds ?? {})
    .map(([k, v]) => `${count(v)} ${k}`)
    .join(', ');
}
