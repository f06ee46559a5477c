import { useMemo, type ReactNode } from 'react';
import type { FunctionRow, FunctionTable } from '../../api/index.ts';
import { count } from '../../format/index.ts';
import { text, useParam } from '../../route/index.ts';
import { Empty, Table } from '../../ui/index.ts';
import { functionColumns } from './columns.tsx';

const byLost = text('-lost');
const byAnomalies = text('-anomalies');
const noText = text('');
const rowKey = (r: FunctionRow) => r.id;

/** All functions as a table, with details of the selected one. */
export function FunctionList(props: {
  table: FunctionTable;
  live: boolean;
  programs: boolean;
  countsOnly?: boolean; // no lost times and models
  choices: ReactNode;
  selected: string;
  onSelect: (id: string) => void;
}) {
  const { table, live, programs, countsOnly } = props;
  const [sort, setSort] = useParam('sort', countsOnly === true ? byAnomalies : byLost);
  const [filter, setFilter] = useParam('q', noText);
  const columns = useMemo(
    () =>
      functionColumns(live, programs).filter(
        (c) => countsOnly !== true || !['lost', 'time%', 'modes'].includes(c.id),
      ),
    [live, programs, countsOnly],
  );
  const missing = live && table.rows.some((r) => r.calls === undefined);
  return (
    <Table<FunctionRow>
      name="functions"
      label="Functions"
      main
      columns={columns}
      rows={table.rows}
      rowKey={rowKey}
      sort={sort}
      onSort={setSort}
      filter={filter}
      onFilter={setFilter}
      selected={props.selected}
      onSelect={(r) => props.onSelect(r.id)}
      tools={props.choices}
      empty={
        <Empty title="No functions yet.">
          <p>Functions appear when the first calls are judged.</p>
        </Empty>
      }
      footer={
        <>
          {table.total > table.rows.length && (
            <span>
              showing {count(table.rows.length)} of {count(table.total)}, by lost time; press / to
              search the rest
            </span>
          )}
          {missing && <span>call counts and times are stored when the run ends</span>}
        </>
      }
    />
  );
}
