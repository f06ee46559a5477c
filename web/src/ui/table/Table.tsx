import { Fragment, useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { count, plural } from '../../format/index.ts';
import { usePrinting } from '../../theme/index.ts';
import type { Column } from './column.ts';
import { Detail } from './Detail.tsx';
import { Head } from './Head.tsx';
import { TableRow } from './TableRow.tsx';
import { Tools } from './Tools.tsx';
import { useCursor } from './useCursor.ts';
import { useRows } from './useRows.ts';
import { top, useWindow } from './window.ts';
import './table.css';

/** Props of Table. Columns must be a stable object. */
export interface TableProps<T extends object> {
  /** Short and stable: names the stored column choice and exported files. */
  name: string;
  /** Description for screen readers. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** "-lost" sorts by lost, descending; '' keeps the order of rows. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** Shows only rows that contain all of these words. */
  filter?: string;
  onFilter?: (filter: string) => void;
  /** Key of the selected row. */
  selected?: string | undefined;
  onSelect?: (row: T) => void;
  /** Called on Enter or a double click. */
  onOpen?: (row: T) => void;
  /** Child rows of a row. */
  children?: (row: T) => readonly T[] | undefined;
  /** Expanded content of a row; undefined if it has none. */
  detail?: (row: T) => ReactNode;
  rowClass?: (row: T) => string;
  /** Makes j, k and Enter control this table wherever the focus is; for one table per view. */
  main?: boolean;
  /** Extra controls before those of the table. */
  tools?: ReactNode;
  /** Shown if there are no rows. */
  empty?: ReactNode;
  /** A note below the rows. */
  footer?: ReactNode;
}

const rowHeight = 28; // row height in pixels as in the styles, with its border
const mostPrinted = 1000; // rows on paper
const fewRows = 200; // up to this many rows are all drawn; beyond, only visible rows

/** A table with sorting, filtering, child rows, copy, export and keyboard navigation. */
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
  const printing = usePrinting();
  const seen = useWindow(scroller, rows.length, rowHeight, extra, rows.length > fewRows);
  const shown = printing
    ? { first: 0, end: Math.min(rows.length, mostPrinted), before: 0, after: 0 }
    : seen;
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
    if (scroller.current) scroller.current.scrollTop = 0; // a new order starts at the top
  }, [sort]);
  const total = table.getPreFilteredRowModel().rows.length;
  return (
    <div className="table-box">
      <Tools
        name={props.name}
        label={props.label}
        columns={props.columns}
        hidden={hidden}
        onHidden={setHidden}
        all={props.rows}
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
        {printing && rows.length > mostPrinted && (
          <span>the first {count(mostPrinted)} are printed; export the table for all</span>
        )}
        {props.footer}
      </div>
    </div>
  );
}

function nothing(total: number, filter: string, empty: ReactNode): ReactNode {
  if (total > 0 && filter !== '') return `None of ${count(total)} rows matches “${filter}”.`;
  return empty ?? 'No rows.';
}

/** A spacer for rows outside the window. */
function Space({ height, columns }: { height: number; columns: number }) {
  return (
    <tr aria-hidden="true" className="space">
      <td colSpan={columns} style={{ height }} />
    </tr>
  );
}
