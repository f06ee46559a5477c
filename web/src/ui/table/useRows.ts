import { useTable, type ReactTable, type Row } from '@tanstack/react-table';
import { useMemo, useState } from 'react';
import type { Column } from './column.ts';
import { text, useParam } from '../../route/index.ts';
import { matcher } from '../filter/parse.ts';
import { definitions, features, readSort, writeSort, type Features } from './features.ts';
import { useHidden } from './hidden.ts';
import type { TableProps } from './Table.tsx';

/** A table and its sort, filter and expansion state. */
export interface Rows<T extends object> {
  table: ReactTable<Features, T>;
  /** The rows as shown: filtered, sorted and expanded. */
  rows: Row<Features, T>[];
  visible: readonly Column<T>[];
  hidden: readonly string[];
  setHidden: (hidden: readonly string[]) => void;
  sort: string;
  filter: string;
  setFilter: (filter: string) => void;
}

const noText = text('');

/** Sorts, filters and expands rows. Keeps the sort order and filter that the props do not control in the address. */
export function useRows<T extends object>(props: TableProps<T>): Rows<T> {
  const { columns } = props;
  const [ownSort, setOwnSort] = useParam(`sort.${props.name}`, noText);
  const [ownFilter, setOwnFilter] = useParam(`q.${props.name}`, noText);
  const [expanded, setExpanded] = useState<Record<string, boolean>>({});
  const [hidden, setHidden] = useHidden(props.name, columns);
  const sort = props.sort ?? ownSort;
  const filter = props.filter ?? ownFilter;
  const match = useMemo(() => matcher(columns, filter), [columns, filter]);
  const defs = useMemo(() => definitions(columns), [columns]);
  const sorting = useMemo(() => readSort(sort), [sort]);
  const columnVisibility = useMemo(
    () => Object.fromEntries(columns.map((c) => [c.id, !hidden.includes(c.id)])),
    [columns, hidden],
  );
  const table = useTable({
    features,
    columns: defs,
    data: props.rows,
    getRowId: props.rowKey,
    ...(props.children ? { getSubRows: props.children } : {}),
    state: { sorting, globalFilter: filter, columnVisibility, expanded },
    onSortingChange: (next) => {
      (props.onSort ?? setOwnSort)(writeSort(typeof next === 'function' ? next(sorting) : next));
    },
    onExpandedChange: (next) => {
      const value = typeof next === 'function' ? next(expanded) : next;
      setExpanded(value === true ? {} : value);
    },
    globalFilterFn: (row: Row<Features, T>) => match(row.original),
    getColumnCanGlobalFilter: () => true,
    filterFromLeafRows: true,
    enableSortingRemoval: false,
    autoResetExpanded: false,
  });
  return {
    table,
    rows: table.getRowModel().rows,
    visible: columns.filter((c) => !hidden.includes(c.id)),
    hidden,
    setHidden,
    sort,
    filter,
    setFilter: props.onFilter ?? setOwnFilter,
  };
}
