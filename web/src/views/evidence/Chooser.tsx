import { useLive, useRunQuery } from '../../api/index.ts';
import { count, duration, statusLabel } from '../../format/index.ts';
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
    unit: 'us',
    value: (r) => r.lost_us,
    cell: (r) => duration(r.lost_us),
  },
  {
    id: 'took',
    header: 'Took',
    title: 'Own time, without callees',
    align: 'right',
    unit: 'us',
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
    unit: 's',
    value: (r) => r.at_s,
    cell: (r) => <When s={r.at_s} />,
  },
  { id: 'status', header: 'Status', value: (r) => statusLabel(r.status) },
];

/** Says that the list is not complete. */
function moreWords(query: Readonly<Record<string, string>>, anomalies = 0): string {
  const narrowed = ['program', 'host', 'rank', 't0', 't1'].some((k) => query[k] !== undefined);
  const of = narrowed ? '; add filters to see others' : ` of ${count(anomalies)} anomalies`;
  return `those that lost the most time${of}`;
}

/** A list of anomalies by lost time, if none is selected. */
export function Chooser() {
  const { query } = useRoute();
  const { overview } = useLive();
  const result = useRunQuery<{ rows: EventRow[]; next?: string }>(
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
  const rows = result.data?.rows;
  return (
    <div className="evidence chooser">
      <h1 className="visually-hidden">Evidence</h1>
      {!rows && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!rows && !result.problem && <Waiting label="loading the anomalies" lines={8} />}
      {rows && (
        <section className="panel evidence-choose" aria-label="Anomalies by lost time">
          <p className="evidence-intro">
            Select an anomaly to see why it was flagged and what caused it.
          </p>
          <Table<EventRow>
            name="evidence-choose"
            label="Anomalies by lost time"
            main
            columns={columns}
            rows={rows}
            rowKey={(r) => eventPath(r.program, r.event_id)}
            onOpen={(r) => go({ event: eventPath(r.program, r.event_id) })}
            empty={<Empty title="No anomalies." />}
            footer={
              result.data?.next && <span>{moreWords(query, overview?.figures.anomalies)}</span>
            }
          />
        </section>
      )}
    </div>
  );
}
