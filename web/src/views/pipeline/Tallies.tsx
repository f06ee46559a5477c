import { useMemo } from 'react';
import type { Status } from '../../api/index.ts';
import { count } from '../../format/index.ts';
import { Table, type Column } from '../../ui/index.ts';
import { tallies, type TallySum } from './figures.ts';

/** Repaired, skipped and lost trace data of all analyzers. */
export function Tallies({ status }: { status: Status }) {
  const rows = useMemo(() => tallies(status), [status]);
  return (
    <Table<TallySum>
      name="tallies"
      label="Repaired, skipped and lost data, most severe first"
      main
      columns={columns}
      rows={rows}
      rowKey={(t) => t.name}
      rowClass={(t) =>
        t.severity === 'data loss' ? 'is-bad' : t.severity === 'warning' ? 'is-watch' : ''
      }
      empty="No trace data were repaired, skipped or lost."
    />
  );
}

const columns: Column<TallySum>[] = [
  {
    id: 'severity',
    header: 'Severity',
    value: (t) => t.severity,
    cell: (t) => <span className="state">{t.severity}</span>,
  },
  {
    id: 'count',
    header: 'Count',
    align: 'right',
    value: (t) => t.count,
    cell: (t) => count(t.count),
  },
  { id: 'sentence', header: 'Description', grow: true, value: (t) => t.sentence },
  { id: 'analyzers', header: 'Analyzers', align: 'right', value: (t) => t.analyzers },
  { id: 'name', header: 'Name', value: (t) => t.name },
];
