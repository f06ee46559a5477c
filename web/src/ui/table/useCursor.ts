import type { Row } from '@tanstack/react-table';
import { useState, type KeyboardEvent, type RefObject } from 'react';
import { useKeys } from '../../keys/index.ts';
import type { Features } from './features.ts';
import type { TableProps } from './Table.tsx';

/** The row that is chosen, and moving it. */
export interface Cursor<T extends object> {
  /** Key of the chosen row. */
  selected: string | undefined;
  /** Its place among the rows; -1: none is chosen. */
  at: number;
  choose: (row: Row<Features, T>) => void;
  /** Keys while the focus is in the table. */
  keys: (event: KeyboardEvent) => void;
}

/** Whether a row unfolds. */
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

/** Moves in a table with the keyboard. scrollTo brings a row into sight. */
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
      { key: 'x', label: 'fold or unfold the row', group, run: () => rows[at]?.toggleExpanded() },
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
