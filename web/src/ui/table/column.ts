import type { ReactNode } from 'react';
import type { TermName } from '../terms.ts';

/** A value for sorting, filtering and copying. */
export type Value = string | number | undefined;

/** A column of a table of T. */
export interface Column<T> {
  /** Short and stable: it is part of the address and of local storage. */
  id: string;
  header: string;
  /** Tooltip of the header. */
  title?: string;
  /** The term that a question mark in the header explains. */
  term?: TermName;
  /** The value for sorting, filtering and copying, in base units. */
  value: (row: T) => Value;
  /** The unit of values that are durations (us) or times since the start (s), which filters parse. */
  unit?: 'us' | 's';
  /** Whether a row matches a condition such as rank:3 of a filter; by default, whether the value does. */
  match?: (row: T, text: string) => boolean;
  /** The content of a cell; the value by default. */
  cell?: (row: T) => ReactNode;
  /** Right-aligns numbers. */
  align?: 'right';
  /** Hidden by default. */
  hidden?: boolean;
  /** Maximum width in pixels. */
  width?: number;
  /** Takes the remaining width and truncates if needed. */
  grow?: boolean;
  /** Disables sorting. */
  unsorted?: boolean;
}

/** Replaces characters that would end a cell. */
function plain(v: Value): string {
  return v === undefined ? '' : String(v).replace(/[\t\r\n]+/g, ' ');
}

/** Formats rows with a header as tab-separated values. */
export function asTSV<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const lines = [
    columns.map((c) => plain(c.header)),
    ...rows.map((r) => columns.map((c) => plain(c.value(r)))),
  ];
  return lines.map((l) => l.join('\t')).join('\n') + '\n';
}

/** Formats rows as a Markdown table. */
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
 * Formats rows as CSV (RFC 4180). Names come from traces, so text that looks like a formula gets a leading apostrophe.
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

/** The CSS classes of a column's cells. */
export function cellClass<T>(c: Column<T>): string {
  return [c.align === 'right' ? 'right' : '', c.grow === true ? 'grow' : ''].join(' ').trim();
}
