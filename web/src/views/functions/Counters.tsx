import { useMemo, type ReactNode } from 'react';
import { useLive, useRunQuery } from '../../api/index.ts';
import { count, short } from '../../format/index.ts';
import { text, useParam, useRoute } from '../../route/index.ts';
import { Empty, Failure, Table, Waiting, type Column } from '../../ui/index.ts';

/** Statistics of a counter over all ranks. */
export interface CounterRow {
  program: number;
  counter: string;
  values: number;
  mean: number | null;
  stddev: number | null;
  minimum: number | null;
  maximum: number | null;
  sum: number | null;
}

const noText = text('');
const rowKey = (r: CounterRow) => `${r.program} ${r.counter}`;

function counterColumns(programs: boolean): Column<CounterRow>[] {
  const number = (id: keyof CounterRow, header: string, title: string): Column<CounterRow> => ({
    id,
    header,
    title,
    align: 'right',
    value: (r) => r[id] ?? undefined,
    cell: (r) => {
      const v = r[id];
      return typeof v === 'number' ? <span title={String(v)}>{short(v)}</span> : '–';
    },
  });
  return [
    {
      id: 'counter',
      header: 'Counter',
      grow: true,
      value: (r) => r.counter,
      cell: (r) => <span title={r.counter}>{r.counter}</span>,
    },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (r) => r.program,
    },
    {
      id: 'values',
      header: 'Values',
      title: 'Number of values on all ranks',
      align: 'right',
      value: (r) => r.values,
      cell: (r) => count(r.values),
    },
    number('mean', 'Mean', 'Of all values'),
    number('stddev', 'Deviation', 'Standard deviation of all values'),
    number('minimum', 'Minimum', 'Smallest value'),
    number('maximum', 'Maximum', 'Largest value'),
    number('sum', 'Sum', 'Of all values'),
  ];
}

/** TAU counters: memory, bytes, page faults. */
export function Counters({ choices }: { choices: ReactNode }) {
  const { overview } = useLive();
  const { query } = useRoute();
  const [sort, setSort] = useParam('csort', noText);
  const [filter, setFilter] = useParam('q', noText);
  const programs = (overview?.programs.length ?? 0) > 1;
  const columns = useMemo(() => counterColumns(programs), [programs]);
  const result = useRunQuery<{ rows: CounterRow[] }>(
    'counters',
    { limit: 5000, program: query.program },
    { every: 10_000, keep: true },
  );
  if (!result.data) {
    return (
      <>
        <div className="tools">{choices}</div>
        {result.problem ? (
          <Failure problem={result.problem} retry={result.refresh} />
        ) : (
          <Waiting label="loading the counters" lines={8} />
        )}
      </>
    );
  }
  return (
    <Table<CounterRow>
      name="counters"
      label="Counters"
      main
      columns={columns}
      rows={result.data.rows}
      rowKey={rowKey}
      sort={sort}
      onSort={setSort}
      filter={filter}
      onFilter={setFilter}
      tools={choices}
      empty={
        overview?.live === true ? (
          <Empty title="No counters are stored yet.">
            <p>Counter statistics are stored when the run ends.</p>
          </Empty>
        ) : (
          <Empty title="The traces have no counters.">
            <p>
              TAU records counters with its monitoring plugin or when it traces memory, I/O and
              messages.
            </p>
          </Empty>
        )
      }
    />
  );
}
