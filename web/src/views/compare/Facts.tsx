import { useMemo, type ReactNode } from 'react';
import type { Comparison, FactChange } from '../../api/index.ts';
import { count, elide } from '../../format/index.ts';
import { flag, text, useParam } from '../../route/index.ts';
import { Empty, Table, type Column } from '../../ui/index.ts';
import { Kind } from './columns.tsx';

const noText = text('');
const keyOf = (f: FactChange) => `${f.section} ${f.program} ${f.name}`;

const sections: Readonly<Record<string, string>> = {
  run: 'run',
  hosts: 'host',
  settings: 'setting',
  metadata: 'metadata',
};

function factColumns(programs: boolean): Column<FactChange>[] {
  const value = (i: 0 | 1): Column<FactChange> => ({
    id: i === 0 ? 'a' : 'b',
    header: i === 0 ? 'A' : 'B',
    grow: true,
    value: (f) => f.values[i],
    cell: (f) => <span title={f.values[i]}>{f.values[i] === '' ? '–' : f.values[i]}</span>,
  });
  return [
    {
      id: 'kind',
      header: 'Change',
      value: (f) => f.change,
      cell: (f) => (
        <>
          <Kind change={f.change} />
          {f.expected && f.change !== 'same' && (
            <span className="muted" title="Differs in every run">
              {' '}
              as usual
            </span>
          )}
        </>
      ),
    },
    { id: 'section', header: 'Of', value: (f) => sections[f.section] ?? f.section },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (f) => f.program,
    },
    {
      id: 'name',
      header: 'Name',
      value: (f) => f.name,
      cell: (f) => <span title={f.name}>{elide(f.name, 48)}</span>,
    },
    value(0),
    value(1),
  ];
}

/** Differences in hosts, settings, versions and rank metadata. */
export function Facts({ of: c, choices }: { of: Comparison; choices: ReactNode }) {
  const [all, setAll] = useParam('all', flag);
  const [sort, setSort] = useParam('sort', noText);
  const [filter, setFilter] = useParam('q', noText);
  const columns = useMemo(() => factColumns(c.programs.length > 1), [c.programs.length]);
  const telling = useMemo(
    () => c.metadata.filter((f) => f.change !== 'same' && !f.expected),
    [c.metadata],
  );
  const total = Object.entries(c.counts.metadata).reduce(
    (n, [kind, v]) => (kind === 'expected' ? n : n + v),
    0,
  );
  return (
    <section className="panel filled" aria-label="Metadata of both runs">
      <Table<FactChange>
        name="compare-metadata"
        label="Metadata of both runs"
        main
        columns={columns}
        rows={all ? c.metadata : telling}
        rowKey={keyOf}
        sort={sort}
        onSort={setSort}
        filter={filter}
        onFilter={setFilter}
        tools={
          <>
            {choices}
            <label className="compare-all">
              <input type="checkbox" checked={all} onChange={(e) => setAll(e.target.checked)} />{' '}
              show all metadata
            </label>
          </>
        }
        empty={
          <Empty title="No metadata differences.">
            <p>{count(total)} values compared: hosts, settings, versions and rank metadata.</p>
          </Empty>
        }
        footer={
          total > c.metadata.length && (
            <span>
              showing {count(c.metadata.length)} of {count(total)} facts
            </span>
          )
        }
      />
    </section>
  );
}
