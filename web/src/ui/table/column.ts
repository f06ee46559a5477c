import type { ReactNode } from 'react';

/** A value to sort, filter and copy by. */
export type Value = string | number | undefined;

/** A column of a table of T. */
export interface Column<T> {
  /** Short and stable: it is in the address and in the storage of the browser. */
  id: string;
  header: string;
  /** What the column means: shown when the header is pointed at. */
  title?: string;
  /** What it is sorted and filtered by, and copied as, in basic units. */
  value: (row: T) => Value;
  /** What is shown; the value unless given. */
  cell?: (row: T) => ReactNode;
  /** Numbers are at the right. */
  align?: 'right';
  /** Not shown until the reader wants it. */
  hidden?: boolean;
  /** In pixels; the column does not grow beyond. */
  width?: number;
  /** It takes the room that is left, and is cut where there is none. */
  grow?: boolean;
  /** Sorting by it makes no sense. */
  unsorted?: boolean;
}

/** A text without what would end a cell. */
function plain(v: Value): string {
  return v === undefined ? '' : String(v).replace(/[\t\r\n]+/g, ' ');
}

/** Rows as texts with tabs between, with a header: for spreadsheets. */
export function asTSV<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const lines = [
    columns.map((c) => plain(c.header)),
    ...rows.map((r) => columns.map((c) => plain(c.value(r)))),
  ];
  return lines.map((l) => l.join('\t')).join('\n') + '\n';
}

/** Rows as a table of Markdown. */
export function asMarkdown<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((c) => c.replace(/[\\|`<>*_[\]]/g, '\\$&')).join(' | ')} |`;
  return [
    line(columns.map((c) => plain(c.header))),
    `| ${columns.map((c) => (c.align === 'right' ? '---:' : '---')).join(' | ')} |`,
    ...rows.map((r) => line(columns.map((c) => plain(c.value(r))))),
    '',
  ].join('\n');
}

/**
 * Rows as CSV of RFC 4180. Texts that a spreadsheet would take for a formula get
 * an apostrophe in front: names in traces are anybody's.
 */
export function asCSV<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const cell = (v: Value) => {
    if (typeof v === 'number') return String(v);
    const text = (v ?? '').replace(/^[=+\-@\t\r]/, "'$&");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [
    columns.map((c) => cell(c.header)),
    ...rows.map((r) => columns.map((c) => cell(c.value(r)))),
  ];
  return lines.map((l) => l.join(',')).join('\r\n') + '\r\n';
}

/** The classes of a cell of a column. */
export function cellClass<T>(c: Column<T>): string {
  return [c.align === 'right' ? 'right' : '', c.grow === true ? 'grow' : ''].join(' ').trim();
}
