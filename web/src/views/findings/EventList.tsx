import { useMemo } from 'react';
import type { Finding, Plot, PlotPoint } from '../../api/index.ts';
import { duration, statusLabel } from '../../format/index.ts';
import { eventPath, go, useHref } from '../../route/index.ts';
import { Table, When, type Column } from '../../ui/index.ts';

/** The anomalies of a finding by lost time, with links to their evidence. */
export function EventList({ plot, finding }: { plot: Plot; finding: Finding }) {
  const rows = useMemo(
    () => plot.points.filter((p) => p.anomaly).sort((a, b) => b.lost_us - a.lost_us),
    [plot],
  );
  const columns = useMemo(() => eventColumns(finding.program), [finding.program]);
  return (
    <Table<PlotPoint>
      name="finding-events"
      label={`Anomalies of finding ${finding.finding}`}
      columns={columns}
      rows={rows}
      rowKey={(p) => p.event_id}
      onOpen={(p) => go({ event: eventPath(finding.program, p.event_id) })}
      empty="Executions not stored yet."
    />
  );
}

function EventLink(props: { program: number; event: string }) {
  const href = useHref();
  return (
    <a href={href({ event: eventPath(props.program, props.event) })} tabIndex={-1}>
      {props.event}
    </a>
  );
}

function eventColumns(program: number): Column<PlotPoint>[] {
  return [
    {
      id: 'event',
      header: 'Event',
      value: (p) => p.event_id,
      cell: (p) => <EventLink program={program} event={p.event_id} />,
    },
    {
      id: 'at',
      header: 'At',
      align: 'right',
      unit: 's',
      value: (p) => p.at_s,
      cell: (p) => <When s={p.at_s} />,
    },
    { id: 'rank', header: 'Rank', align: 'right', value: (p) => p.rank },
    { id: 'host', header: 'Host', value: (p) => p.host },
    {
      id: 'took',
      header: 'Took',
      title: 'Own time, without callees',
      align: 'right',
      unit: 'us',
      value: (p) => p.exclusive_us,
      cell: (p) => duration(p.exclusive_us),
    },
    {
      id: 'lost',
      header: 'Lost',
      align: 'right',
      unit: 'us',
      value: (p) => p.lost_us,
      cell: (p) => duration(p.lost_us),
    },
    {
      id: 'status',
      header: 'Status',
      hidden: true,
      value: (p) => p.status && statusLabel(p.status),
    },
  ];
}
