import type { Row } from '@tanstack/react-table';
import { cellClass, type Column } from './column.ts';
import type { Features } from './features.ts';
import type { TableProps } from './Table.tsx';
import { unfolds } from './useCursor.ts';

interface RowProps<T extends object> {
  props: TableProps<T>;
  row: Row<Features, T>;
  index: number;
  columns: readonly Column<T>[];
  selected: boolean;
  /** Whether Tab reaches the row. */
  reachable: boolean;
  onChoose: (row: Row<Features, T>) => void;
}

/** A row of a table. */
export function TableRow<T extends object>({
  props,
  row,
  index,
  columns,
  selected,
  reachable,
  onChoose,
}: RowProps<T>) {
  const folding = unfolds(row, props);
  return (
    <tr
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={selected}
      aria-expanded={folding ? row.getIsExpanded() : undefined}
      aria-level={props.children ? row.depth + 1 : undefined}
      tabIndex={reachable ? 0 : -1}
      className={`${props.rowClass?.(row.original) ?? ''} ${row.depth > 0 ? 'sub' : ''}`.trim()}
      onClick={() => onChoose(row)}
      onDoubleClick={() => props.onOpen?.(row.original)}
    >
      {columns.map((c, i) => (
        <td key={c.id} className={cellClass(c)}>
          {i === 0 && folding && <Fold row={row} />}
          {c.cell ? c.cell(row.original) : (c.value(row.original) ?? '–')}
        </td>
      ))}
    </tr>
  );
}

/** Expands a row by mouse; x and the arrows do so by keyboard. */
function Fold<T extends object>({ row }: { row: Row<Features, T> }) {
  const open = row.getIsExpanded();
  return (
    <button
      type="button"
      className="fold"
      tabIndex={-1}
      aria-label={open ? 'fold' : 'unfold'}
      onClick={(event) => {
        event.stopPropagation();
        row.toggleExpanded();
      }}
    >
      <span aria-hidden="true">{open ? '▾' : '▸'}</span>
    </button>
  );
}
