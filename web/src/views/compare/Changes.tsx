import { useMemo, type ReactNode } from 'react';
import type { Comparison } from '../../api/index.ts';
import { count } from '../../format/index.ts';
import { list, text, useParam } from '../../route/index.ts';
import { Empty, Table } from '../../ui/index.ts';
import { changeColumns, keyOf, rowsOf, type Row } from './columns.tsx';
import { Detail } from './Detail.tsx';
import { kinds, kindText } from './pair.ts';

const noText = text('');

/** New, worse, better and gone rows with bars of A on the left and B on the right, largest change first. */
export function Changes(props: { by: 'lost' | 'time'; of: Comparison; choices: ReactNode }) {
  const { by, of: c } = props;
  const [wanted, want] = useParam('kind', list);
  const [sort, setSort] = useParam('sort', noText);
  const [filter, setFilter] = useParam('q', noText);
  const [selected, select] = useParam('sel', noText);
  const all = useMemo(() => rowsOf(c, by), [c, by]);
  const rows = useMemo(
    () => all.filter((r) => (wanted.length > 0 ? wanted.includes(r.change) : r.change !== 'same')),
    [all, wanted],
  );
  const most = useMemo(() => rows.reduce((n, r) => Math.max(n, ...r.amount), 0), [rows]);
  const columns = useMemo(
    () => changeColumns(by, most, c.programs.length > 1),
    [by, most, c.programs.length],
  );
  const counts = by === 'lost' ? c.counts.changes : c.counts.functions;
  const total = Object.values(counts).reduce((n, v) => n + v, 0);
  const row = all.find((r) => keyOf(r) === selected);
  const toggle = (kind: string) =>
    want(wanted.includes(kind) ? wanted.filter((k) => k !== kind) : [...wanted, kind]);
  const chips = (
    <>
      {props.choices}
      <div className="compare-chips" role="group" aria-label="Filter by change">
        {kinds.map((k) => (
          <button
            key={k}
            type="button"
            className={`compare-chip ${k}`}
            title={kindText[k]}
            aria-pressed={wanted.includes(k)}
            onClick={() => toggle(k)}
          >
            {count(counts[k] ?? 0)} {k}
          </button>
        ))}
      </div>
    </>
  );
  return (
    <div className={`compare-main ${row ? 'with-detail' : ''}`}>
      <section
        className="panel filled"
        aria-label={by === 'lost' ? 'Changes in lost time' : 'Changes in call time'}
      >
        <Table<Row>
          name={`compare-${by}`}
          label={
            by === 'lost' ? 'Call paths by change in lost time' : 'Functions by change in time'
          }
          main
          columns={columns}
          rows={rows}
          rowKey={keyOf}
          sort={sort}
          onSort={setSort}
          filter={filter}
          onFilter={setFilter}
          selected={selected}
          onSelect={(r) => select(keyOf(r))}
          tools={chips}
          empty={<None by={by} total={total} wanted={wanted.length > 0} />}
          footer={
            total > all.length && (
              <span>
                showing the {count(all.length)} largest of {count(total)} changes
              </span>
            )
          }
        />
      </section>
      {row && <Detail key={selected} row={row} of={c} onClose={() => select('')} />}
    </div>
  );
}

function None({ by, total, wanted }: { by: 'lost' | 'time'; total: number; wanted: boolean }) {
  if (wanted) return <Empty title="No such changes." />;
  if (total > 0)
    return (
      <Empty title="No change over 10 %.">
        <p>Select “same” to list the rest.</p>
      </Empty>
    );
  return by === 'lost' ? (
    <Empty title="Neither run has anomalies.">
      <p>“All time” compares the time of all calls.</p>
    </Empty>
  ) : (
    <Empty title="Neither run has stored call times.">
      <p>Call times are stored when a run ends.</p>
    </Empty>
  );
}
