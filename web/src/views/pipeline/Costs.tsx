import { useMemo } from 'react';
import type { Status } from '../../api/index.ts';
import { bytes, count, percent, rate, seconds } from '../../format/index.ts';
import { Table, type Column } from '../../ui/index.ts';
import { costs, type HostCost } from './figures.ts';

/** CPU and memory use of the analyzers by host. */
export function Costs({ status }: { status: Status }) {
  const rows = useMemo(() => costs(status), [status]);
  return (
    <Table<HostCost>
      name="costs"
      label="CPU time and memory of the analyzers by host"
      main
      columns={columns}
      rows={rows}
      rowKey={(c) => c.host}
      empty="No analyzer connected yet."
    />
  );
}

const columns: Column<HostCost>[] = [
  { id: 'host', header: 'Host', grow: true, value: (c) => c.host },
  { id: 'analyzers', header: 'Analyzers', align: 'right', value: (c) => c.analyzers },
  {
    id: 'ranks',
    header: 'Ranks',
    align: 'right',
    value: (c) => c.ranks,
    cell: (c) => count(c.ranks),
  },
  {
    id: 'cpu',
    header: 'CPU',
    title: 'In percent of one core, since connecting',
    align: 'right',
    value: (c) => c.cpu,
    cell: (c) => <span title={`${seconds(c.cpuSeconds)} of CPU time`}>{percent(c.cpu)}</span>,
  },
  { id: 'rss', header: 'Memory', align: 'right', value: (c) => c.rss, cell: (c) => bytes(c.rss) },
  {
    id: 'events',
    header: 'Events/s',
    align: 'right',
    value: (c) => c.eventsPerSecond,
    cell: (c) => rate(c.eventsPerSecond),
  },
];
