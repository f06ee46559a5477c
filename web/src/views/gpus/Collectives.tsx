import { useMemo } from 'react';
import type { Clock, Collective, Collectives as List } from '../../api/index.ts';
import { duration, plural } from '../../format/index.ts';
import { text, useParam } from '../../route/index.ts';
import { Table } from '../../ui/index.ts';
import { clockColumns, collectiveColumns } from './columns.tsx';
import { Notes } from './Notes.tsx';

const noText = text('');

/** Collective operations compared over ranks, and the corrections of clocks. */
export function Collectives({ data, programs }: { data: List; programs: boolean }) {
  const [sort, setSort] = useParam('opsort', noText);
  const [clockSort, setClockSort] = useParam('clocksort', noText);
  const columns = useMemo(() => collectiveColumns(programs), [programs]);
  const clocks = useMemo(() => clockColumns(programs), [programs]);
  if (data.rows.length === 0 && data.notes.length === 0) return null;
  return (
    <div className="gpus-collectives">
      <section className="panel" aria-labelledby="collectives-title">
        <header className="panel-head">
          <h2 id="collectives-title">Collective operations</h2>
        </header>
        {data.rows.length > 0 && (
          <Table<Collective>
            name="collectives"
            label="Collective operations compared over ranks"
            columns={columns}
            rows={data.rows}
            rowKey={(c) =>
              [c.program, c.process_group, c.operation, c.bytes, c.dtype, c.group_size].join(' ')
            }
            sort={sort}
            onSort={setSort}
            footer={data.more > 0 && <span>and {plural(data.more, 'more operation')}</span>}
          />
        )}
        <Notes list={data.notes} />
      </section>
      {data.clocks.length > 1 && (
        <section className="panel" aria-labelledby="clocks-title">
          <header className="panel-head">
            <h2 id="clocks-title">Clocks</h2>
          </header>
          <p className="gpu-words">{clockWords(data.clocks)}</p>
          <Table<Clock>
            name="clocks"
            label="Corrections of the clocks of ranks"
            columns={clocks}
            rows={data.clocks}
            rowKey={(c) => `${c.program}:${c.rank}`}
            sort={clockSort}
            onSort={setClockSort}
          />
        </section>
      )}
    </div>
  );
}

/** The corrections in a sentence. */
export function clockWords(clocks: readonly Clock[]): string {
  const unknown = clocks.filter((c) => c.matched === 0).length;
  if (unknown === clocks.length)
    return 'No clock was corrected: no collective operation ends at the same time on several ranks.';
  const offsets = clocks.map((c) => c.offset_us);
  const apart = Math.max(...offsets) - Math.min(...offsets);
  return `The clocks of ranks are up to ${duration(apart)} apart, by the ends of collective operations. Skews are corrected.`;
}
