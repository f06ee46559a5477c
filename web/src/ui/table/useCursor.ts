import type { Row } from '@tanstack/react-table';
import { useState, type KeyboardEvent, type RefObject } from 'react';
import { useKeys } from '../../keys/index.ts';
import type { Features } from './features.ts';
import type { TableProps } from './Table.tsx';

/** The selected row and its movement. */
export interface Cursor<T extends object> {
  /** Key of the selected row. */
  selected: string | undefined;
  /** Index of the selected row; -1 if none. */
  at: number;
  choose: (row: Row<Features, T>) => void;
  /** Handles keys while the table has the focus. */
  keys: (event: KeyboardEvent) => void;
}

/** Reports whether a row can be expanded. */
export function unfolds<T extends object>(row: Row<Features, T>, props: TableProps<T>): boolean {
  return row.subRows.length > 0 || props.detail !== undefined;
}

const jumps: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -1e9,
  End: 1e9,
};

/** Keyboard navigation of a table. scrollTo makes a row visible. */
export function useCursor<T extends object>(
  props: TableProps<T>,
  rows: readonly Row<Features, T>[],
  box: RefObject<HTMLElement | null>,
  scrollTo: (index: number) => void,
): Cursor<T> {
  const [own, setOwn] = useState<string>();
  const selected = props.selected ?? own;
  const at = rows.findIndex((r) => r.id === selected);
  const choose = (row: Row<Features, T>) => {
    setOwn(row.id);
    props.onSelect?.(row.original);
  };
  const move = (by: number) => {
    const index = Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by));
    const row = rows[index];
    if (!row) return;
    choose(row);
    scrollTo(index);
    requestAnimationFrame(() => {
      box.current
        ?.querySelector<HTMLElement>(`tr[data-index="${index}"]`)
        ?.focus({ preventScroll: true });
    });
  };
  const open = () => {
    const row = rows[at];
    if (!row) return;
    if (props.onOpen) props.onOpen(row.original);
    else if (unfolds(row, props)) row.toggleExpanded();
  };
  const group = 'Table';
  useKeys(
    [
      { key: 'j', label: 'next row', group, run: () => move(1) },
      { key: 'k', label: 'previous row', group, run: () => move(-1) },
      { key: 'Enter', label: 'open the row', group, run: open },
      {
        key: 'x',
        label: 'expand or collapse the row',
        group,
        run: () => rows[at]?.toggleExpanded(),
      },
    ],
    props.main === true,
  );
  const keys = (event: KeyboardEvent) => {
    const row = rows[at];
    const jump = jumps[event.key];
    if (!(event.target instanceof HTMLTableRowElement)) return;
    if (jump !== undefined) move(jump);
    else if (event.key === 'Enter') open();
    else if (event.key === 'ArrowRight' && row && unfolds(row, props)) row.toggleExpanded(true);
    else if (event.key === 'ArrowLeft') row?.toggleExpanded(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { selected, at, choose, keys };
}
