import { useRunQuery } from '../../api/index.ts';
import { duration } from '../../format/index.ts';
import { eventPath, go, useHref, useRoute } from '../../route/index.ts';
import {
  Empty,
  Failure,
  FunctionName,
  Kind,
  Table,
  Waiting,
  When,
  type Column,
} from '../../ui/index.ts';

/** A row of the list of events. */
export interface EventRow {
  event_id: string;
  program: number;
  rank: number;
  host: string;
  at_s: number;
  exclusive_us: number;
  lost_us: number;
  kind: string;
  status: string;
  function: string;
}

function Event({ row }: { row: EventRow }) {
  const href = useHref();
  return <a href={href({ event: eventPath(row.program, row.event_id) })}>{row.event_id}</a>;
}

const columns: Column<EventRow>[] = [
  { id: 'event', header: 'Event', value: (r) => r.event_id, cell: (r) => <Event row={r} /> },
  {
    id: 'lost',
    header: 'Lost',
    align: 'right',
    value: (r) => r.lost_us,
    cell: (r) => duration(r.lost_us),
  },
  {
    id: 'took',
    header: 'Took',
    title: 'Time in the function itself, without those that it called',
    align: 'right',
    value: (r) => r.exclusive_us,
    cell: (r) => duration(r.exclusive_us),
  },
  { id: 'kind', header: 'Kind', value: (r) => r.kind, cell: (r) => <Kind kind={r.kind} /> },
  {
    id: 'function',
    header: 'Function',
    grow: true,
    value: (r) => r.function,
    cell: (r) => <FunctionName name={r.function} />,
  },
  { id: 'rank', header: 'Rank', align: 'right', value: (r) => r.rank },
  { id: 'host', header: 'Host', value: (r) => r.host },
  {
    id: 'at',
    header: 'At',
    align: 'right',
    value: (r) => r.at_s,
    cell: (r) => <When s={r.at_s} />,
  },
  { id: 'status', header: 'Status', value: (r) => r.status },
];

/** Where no execution is chosen: those that lost most. */
export function Chooser() {
  const { query } = useRoute();
  const asked = useRunQuery<{ rows: EventRow[] }>(
    'events',
    {
      order: 'lost',
      limit: 100,
      program: query.program,
      host: query.host,
      rank: query.rank,
      since: query.t0,
      until: query.t1,
    },
    { every: 5000, keep: true },
  );
  const rows = asked.data?.rows;
  return (
    <div className="evidence chooser">
      <h1 className="visually-hidden">Evidence</h1>
      {!rows && asked.problem && <Failure problem={asked.problem} retry={asked.refresh} />}
      {!rows && !asked.problem && <Waiting label="loading the anomalies" lines={8} />}
      {rows && (
        <section className="panel evidence-choose" aria-label="Anomalies that lost most">
          <p className="evidence-intro">
            Choose an anomaly to see what happened, why it was flagged and who caused it. These lost
            most.
          </p>
          <Table<EventRow>
            name="evidence-choose"
            label="Anomalies that lost most"
            main
            columns={columns}
            rows={rows}
            rowKey={(r) => eventPath(r.program, r.event_id)}
            onOpen={(r) => go({ event: eventPath(r.program, r.event_id) })}
            empty={<Empty title="There is no anomaly here." />}
          />
        </section>
      )}
    </div>
  );
}
