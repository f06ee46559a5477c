import type { ReactTable } from '@tanstack/react-table';
import { Term } from '../Term.tsx';
import { cellClass, type Column } from './column.ts';
import type { Features } from './features.ts';

/** The table header with sort buttons. */
export function Head<T extends object>(props: {
  table: ReactTable<Features, T>;
  columns: readonly Column<T>[];
}) {
  return (
    <thead>
      <tr>
        {props.columns.map((c) => {
          const column = props.table.getColumn(c.id);
          const order = column?.getIsSorted() ?? false;
          return (
            <th
              key={c.id}
              scope="col"
              className={cellClass(c)}
              style={c.width === undefined ? undefined : { width: c.width }}
              aria-sort={order === false ? undefined : order === 'asc' ? 'ascending' : 'descending'}
              title={c.title}
            >
              {c.unsorted === true ? (
                c.header
              ) : (
                <button type="button" onClick={column?.getToggleSortingHandler()}>
                  {c.header}
                  <span className="order" aria-hidden="true">
                    {order === false ? '' : order === 'asc' ? '↑' : '↓'}
                  </span>
                </button>
              )}
              {c.term !== undefined && <Term name={c.term} mark />}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
