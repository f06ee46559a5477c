import {
  columnFilteringFeature,
  columnVisibilityFeature,
  createExpandedRowModel,
  createFilteredRowModel,
  createSortedRowModel,
  globalFilteringFeature,
  rowExpandingFeature,
  rowSortingFeature,
  tableFeatures,
  type ColumnDef,
  type SortingState,
} from '@tanstack/react-table';
import type { Column, Value } from './column.ts';

/** Table features in use. */
export const features = tableFeatures({
  rowSortingFeature,
  columnVisibilityFeature,
  columnFilteringFeature,
  globalFilteringFeature,
  rowExpandingFeature,
  sortedRowModel: createSortedRowModel(),
  filteredRowModel: createFilteredRowModel(),
  expandedRowModel: createExpandedRowModel(),
});

export type Features = typeof features;

const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Compares numbers by size and strings in natural order. */
export function compare(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a ?? ''), String(b ?? ''));
}

/** Converts columns to TanStack column definitions. */
export function definitions<T extends object>(
  columns: readonly Column<T>[],
): ColumnDef<Features, T>[] {
  return columns.map((c) => ({
    id: c.id,
    header: c.header,
    accessorFn: (row: T) => c.value(row),
    enableSorting: c.unsorted !== true,
    sortUndefined: 'last' as const,
    sortDescFirst: c.align === 'right',
    sortFn: (a, b, id) => compare(a.getValue<Value>(id), b.getValue<Value>(id)),
    filterFn: undefined,
  }));
}

/** Parses a sort parameter: "-lost" is lost, descending. */
export function readSort(text: string): SortingState {
  if (text === '') return [];
  return text.startsWith('-') ? [{ id: text.slice(1), desc: true }] : [{ id: text, desc: false }];
}

/** Formats a sort parameter. */
export function writeSort(sorting: SortingState): string {
  const [first] = sorting;
  return first === undefined ? '' : (first.desc ? '-' : '') + first.id;
}
