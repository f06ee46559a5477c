import { useState } from 'react';
import type { Comparables, Neighbor } from '../../api/index.ts';
import { bytes } from '../../format/index.ts';
import { currentRoute, follow, go, write } from '../../route/index.ts';
import { Table, type Column } from '../../ui/index.ts';

function choose(r: Neighbor): void {
  go({ query: { a: r.id, browse: '' } });
}

const columns: readonly Column<Neighbor>[] = [
  {
    id: 'name',
    header: 'Run',
    value: (r) => r.name,
    cell: (r) => (
      <a
        href={write(follow(currentRoute(), { query: { a: r.id, browse: '' } }))}
        title={`Compare with ${r.where ?? r.name}`}
      >
        {r.name}
      </a>
    ),
  },
  {
    id: 'program',
    header: 'Program',
    value: (r) => r.program ?? '',
    cell: (r) => (
      <>
        {r.program ?? <span className="muted">unknown</span>}{' '}
        {!r.same_program && (
          <span className="tag" title="It seems to be another program than that of this run">
            other
          </span>
        )}
      </>
    ),
  },
  {
    id: 'started',
    header: 'Start',
    value: (r) => r.started ?? '',
    cell: (r) =>
      r.started === undefined ? (
        ''
      ) : (
        <time dateTime={r.started}>{new Date(r.started).toLocaleString()}</time>
      ),
  },
  { id: 'state', header: 'State', value: (r) => r.state },
  {
    id: 'bytes',
    header: 'Size',
    title: 'Of the files in its directory',
    align: 'right',
    value: (r) => r.bytes,
    cell: (r) => bytes(r.bytes),
  },
];

/** The runs beside the one of the page: those of the same program first, then the newest. */
export function Neighbors({ list }: { list: Comparables }) {
  const [sort, setSort] = useState('');
  const [filter, setFilter] = useState('');
  return (
    <section className="panel compare-neighbors" aria-labelledby="neighbors-title">
      <header className="panel-head">
        <h2 id="neighbors-title">
          Compare with a run of <span className="path">{list.neighbors_dir}</span>
        </h2>
      </header>
      <Table<Neighbor>
        name="neighbors"
        label="Runs to compare with"
        columns={columns}
        rows={list.neighbors}
        rowKey={(r) => r.id}
        sort={sort}
        onSort={setSort}
        filter={filter}
        onFilter={setFilter}
        onOpen={choose}
      />
    </section>
  );
}
