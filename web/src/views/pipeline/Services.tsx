import type { Shard, Status } from '../../api/index.ts';
import { bytes, count, rate, seconds } from '../../format/index.ts';
import { Notice, Table, type Column } from '../../ui/index.ts';

/** The parameter server, the store and the live statistics. */
export function Services({ status }: { status: Status }) {
  const { store, stats_sender: sender } = status;
  return (
    <div className="services">
      <div className="service-facts">
        {store?.last_error && <Notice level="bad">The store: {store.last_error}</Notice>}
        {sender?.last_error && <Notice level="watch">Live statistics: {sender.last_error}</Notice>}
        <Facts
          title={store ? `Store (${store.kind})` : 'Store'}
          facts={
            store
              ? [
                  ['records stored', count(store.records)],
                  ['store rate', rate(store.records_per_second)],
                  ['oldest pending', seconds(store.lag_seconds)],
                  [
                    'pending messages',
                    `${count(store.pending_messages)} (${bytes(store.pending_bytes)})`,
                  ],
                ]
              : [['', 'No store in this process.']]
          }
        />
        {sender && (
          <Facts
            title="Live statistics"
            facts={[
              ['packets sent', count(sender.sent)],
              ['wait', count(sender.pending)],
              ['resent', count(sender.retries)],
            ]}
          />
        )}
      </div>
      <Table<Shard>
        name="shards"
        label="Shards of the parameter server"
        columns={columns}
        rows={status.parameter_server ?? []}
        rowKey={(s) => s.name}
        rowClass={(s) => (s.refused > 0 ? 'is-watch' : '')}
        empty="No parameter server: a single process analyzed the run, or the run is not watched."
      />
    </div>
  );
}

function Facts(props: { title: string; facts: readonly (readonly [string, string])[] }) {
  return (
    <section className="facts">
      <h2>{props.title}</h2>
      <dl>
        {props.facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const columns: Column<Shard>[] = [
  { id: 'name', header: 'Shard', value: (s) => s.name },
  {
    id: 'exchanges',
    header: 'Exchanges',
    align: 'right',
    value: (s) => s.exchanges,
    cell: (s) => count(s.exchanges),
  },
  {
    id: 'rate',
    header: 'Exchanges/s',
    align: 'right',
    value: (s) => s.exchanges_per_second,
    cell: (s) => rate(s.exchanges_per_second),
  },
  {
    id: 'p50',
    header: 'p50',
    title: 'Recent exchanges',
    align: 'right',
    value: (s) => s.latency?.p50_seconds,
    cell: (s) => seconds(s.latency?.p50_seconds),
  },
  {
    id: 'p99',
    header: 'p99',
    title: 'Recent exchanges',
    align: 'right',
    value: (s) => s.latency?.p99_seconds,
    cell: (s) => seconds(s.latency?.p99_seconds),
  },
  {
    id: 'mean',
    header: 'Mean',
    align: 'right',
    value: (s) => s.latency?.mean_seconds,
    cell: (s) => seconds(s.latency?.mean_seconds),
  },
  {
    id: 'repeated',
    header: 'Repeated',
    title: 'Duplicate exchanges',
    align: 'right',
    value: (s) => s.repeated,
    cell: (s) => count(s.repeated),
  },
  {
    id: 'refused',
    header: 'Refused',
    title: 'Invalid exchanges',
    align: 'right',
    value: (s) => s.refused,
    cell: (s) => count(s.refused),
  },
  {
    id: 'models',
    header: 'Models',
    align: 'right',
    value: (s) => s.models,
    cell: (s) => count(s.models),
  },
  {
    id: 'warm',
    header: 'Ready',
    title: 'Models with enough samples to judge',
    align: 'right',
    value: (s) => s.models_warm,
    cell: (s) => count(s.models_warm),
  },
  {
    id: 'version',
    header: 'Version',
    align: 'right',
    value: (s) => s.version,
    cell: (s) => count(s.version),
  },
  {
    id: 'in',
    header: 'Bytes in',
    align: 'right',
    value: (s) => s.bytes_in,
    cell: (s) => bytes(s.bytes_in),
  },
  {
    id: 'out',
    header: 'Bytes out',
    align: 'right',
    value: (s) => s.bytes_out,
    cell: (s) => bytes(s.bytes_out),
  },
  {
    id: 'snapshot',
    header: 'Copy on disk',
    align: 'right',
    value: (s) => s.snapshot?.age_seconds,
    cell: (s) =>
      s.snapshot ? `${seconds(s.snapshot.age_seconds)} old, ${bytes(s.snapshot.bytes)}` : 'none',
  },
];
