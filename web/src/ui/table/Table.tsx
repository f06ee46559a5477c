import { Fragment, useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { count, plural } from '../../format/index.ts';
import type { Column } from './column.ts';
import { Detail } from './Detail.tsx';
import { Head } from './Head.tsx';
import { TableRow } from './TableRow.tsx';
import { Tools } from './Tools.tsx';
import { useCursor } from './useCursor.ts';
import { useRows } from './useRows.ts';
import { top, useWindow } from './window.ts';
import './table.css';

/** Props of Table. Columns must stay the same object while nothing about them changes. */
export interface TableProps<T extends object> {
  /** Short and stable: the choice of columns is kept under it, and files are named after it. */
  name: string;
  /** What the table shows, for those who cannot see it. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** "-lost": by lost, most first; '' is the order of rows. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** Only rows that have all of these words. */
  filter?: string;
  onFilter?: (filter: string) => void;
  /** Key of the row that is chosen. */
  selected?: string | undefined;
  onSelect?: (row: T) => void;
  /** Enter, or a double click. */
  onOpen?: (row: T) => void;
  /** Rows that are folded under one. */
  children?: (row: T) => readonly T[] | undefined;
  /** What a row unfolds to; undefined: it does not. */
  detail?: (row: T) => ReactNode;
  rowClass?: (row: T) => string;
  /** j, k and Enter move in this table, wherever the focus is. One table of a view may have this. */
  main?: boolean;
  /** More controls, before those of the table. */
  tools?: ReactNode;
  /** Shown instead of rows where there are none. */
  empty?: ReactNode;
  /** A sentence below: what is not shown. */
  footer?: ReactNode;
}

const rowHeight = 28; // as the styles have it, with the line below
const fewRows = 200; // drawn all; of more only those in sight

/** A table that sorts, filters, folds, copies and exports, and is moved in with the keyboard. */
export function Table<T extends object>(props: TableProps<T>) {
  const { table, rows, visible, hidden, setHidden, sort, filter, setFilter } = useRows(props);
  const scroller = useRef<HTMLDivElement>(null);
  const [heights, setHeights] = useState<Readonly<Record<string, number>>>({});
  const extra = useMemo(
    () =>
      new Map(
        rows.flatMap((r, i) =>
          r.getIsExpanded() && heights[r.id] ? [[i, heights[r.id] ?? 0]] : [],
        ),
      ),
    [rows, heights],
  );
  const shown = useWindow(scroller, rows.length, rowHeight, extra, rows.length > fewRows);
  const scrollTo = useCallback(
    (index: number) => {
      const box = scroller.current;
      if (!box) return;
      const y = top(index, rowHeight, extra);
      if (y < box.scrollTop) box.scrollTop = y;
      else if (y + 2 * rowHeight > box.scrollTop + box.clientHeight)
        box.scrollTop = y + 2 * rowHeight - box.clientHeight;
    },
    [extra],
  );
  const cursor = useCursor(props, rows, scroller, scrollTo);
  useEffect(() => {
    if (scroller.current) scroller.current.scrollTop = 0; // a new order is looked at from its begin
  }, [sort]);
  const total = table.getPreFilteredRowModel().rows.length;
  return (
    <div className="table-box">
      <Tools
        name={props.name}
        columns={props.columns}
        hidden={hidden}
        onHidden={setHidden}
        rows={() => table.getSortedRowModel().flatRows.map((r) => r.original)}
        filter={filter}
        onFilter={setFilter}
        extra={props.tools}
      />
      <div className="table-scroll" ref={scroller}>
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a grid is moved in with keys */}
        <table
          role={props.children || props.detail ? 'treegrid' : 'grid'}
          aria-label={props.label}
          aria-rowcount={rows.length + 1}
          onKeyDown={cursor.keys}
        >
          <Head table={table} columns={visible} />
          <tbody>
            {shown.before > 0 && <Space height={shown.before} columns={visible.length} />}
            {rows.slice(shown.first, shown.end).map((row, i) => (
              <Fragment key={row.id}>
                <TableRow
                  props={props}
                  row={row}
                  index={shown.first + i}
                  columns={visible}
                  selected={row.id === cursor.selected}
                  reachable={row.id === cursor.selected || (cursor.at < 0 && i === 0)}
                  onChoose={cursor.choose}
                />
                {props.detail && row.getIsExpanded() && (
                  <Detail
                    columns={visible.length}
                    onHeight={(h) =>
                      setHeights((now) => (now[row.id] === h ? now : { ...now, [row.id]: h }))
                    }
                  >
                    {props.detail(row.original)}
                  </Detail>
                )}
              </Fragment>
            ))}
            {shown.after > 0 && <Space height={shown.after} columns={visible.length} />}
          </tbody>
        </table>
        {rows.length === 0 && (
          <div className="table-empty">{nothing(total, filter, props.empty)}</div>
        )}
      </div>
      <div className="table-foot">
        <span>
          {filter === ''
            ? plural(total, 'row')
            : `${count(rows.length)} of ${plural(total, 'row')}`}
        </span>
        {props.footer}
      </div>
    </div>
  );
}

function nothing(total: number, filter: string, empty: ReactNode): ReactNode {
  if (total > 0 && filter !== '') return `None of ${count(total)} rows has “${filter}”.`;
  return empty ?? 'There is nothing to list.';
}

/** Stands for rows that are out of sight. */
function Space({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true" className="space">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}
