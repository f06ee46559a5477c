import { hasRank } from '../../format/index.ts';
import type { Column, Value } from '../table/column.ts';

// The language of filters: words, and conditions such as rank:3, host:node02, lost>10ms or first:1:30..2:00. A minus negates.

export type Operator = ':' | '=' | '>' | '<' | '>=' | '<=';

/** A word or condition of a filter. */
export interface Term {
  not: boolean;
  /** Empty for a word, and for a duration without a column as in >10ms. */
  field: string;
  operator: Operator;
  value: string;
}

/** Splits a filter into terms. Quotes keep spaces. */
export function terms(filter: string): Term[] {
  const all: Term[] = [];
  for (const [token] of filter.matchAll(/(?:"[^"]*"?|[^\s"])+/g)) {
    const m = /^(-?)([\w%]*)(>=|<=|[:=><])(.*)$/s.exec(token);
    const unquoted = (text: string) => text.replaceAll('"', '');
    const isCondition = m && (m[2] !== '' || /[<>]/.test(m[3] ?? ''));
    if (isCondition && !token.startsWith('"')) {
      all.push({
        not: m[1] === '-',
        field: (m[2] ?? '').toLowerCase(),
        operator: m[3] as Operator,
        value: unquoted(m[4] ?? ''),
      });
    } else {
      const not = token.startsWith('-') && token.length > 1;
      all.push({ not, field: '', operator: ':', value: unquoted(not ? token.slice(1) : token) });
    }
  }
  return all;
}

const micros: Readonly<Record<string, number>> = {
  ns: 1e-3,
  us: 1,
  µs: 1,
  ms: 1e3,
  s: 1e6,
  min: 60e6,
  m: 60e6,
  h: 3600e6,
};

/** Parses a duration or a time since the start, as in 10ms, 1.5s, 1:30 or 00:14:20.5, in microseconds; NaN if it is neither. */
export function parseTime(text: string): number {
  const clock = /^(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$/.exec(text);
  if (clock) return ((Number(clock[1] ?? 0) * 60 + Number(clock[2])) * 60 + Number(clock[3])) * 1e6;
  const m = /^(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]+)$/.exec(text);
  return m ? Number(m[1]) * (micros[m[2] ?? ''] ?? NaN) : NaN;
}

/** The names that select a column: its ID and its header, both also in the singular. */
export function fieldNames<T>(column: Column<T>): string[] {
  const header = column.header.toLowerCase().replace(/[^a-z0-9%]+/g, '');
  const all = [column.id.toLowerCase(), header].filter((n) => n !== '');
  return [...new Set([...all, ...all.map((n) => n.replace(/s$/, ''))])];
}

/** Finds the column of a field; an empty field or "duration" is the first duration. */
export function columnOf<T>(columns: readonly Column<T>[], field: string): Column<T> | undefined {
  const found = columns.find((c) => fieldNames(c).includes(field));
  if (found || (field !== '' && field !== 'duration')) return found;
  const times = columns.filter((c) => c.unit === 'us');
  return times.find((c) => c.id === 'took') ?? times[0];
}

/** Parses a number in the unit of a column; NaN for other text. */
function numberIn<T>(column: Column<T>, text: string): number {
  const time = column.unit === undefined ? NaN : parseTime(text);
  if (!Number.isNaN(time)) return column.unit === 's' ? time / 1e6 : time;
  return text.trim() === '' ? NaN : Number(text.replace(/%$/, ''));
}

function holds<T>(column: Column<T>, row: T, term: Term): boolean {
  const value = column.value(row);
  if (term.operator === ':' && column.match) return column.match(row, term.value);
  if (term.operator !== ':' && term.operator !== '=') {
    const limit = numberIn(column, term.value);
    if (typeof value !== 'number') return false;
    if (term.operator === '>') return value > limit;
    if (term.operator === '<') return value < limit;
    return term.operator === '>=' ? value >= limit : value <= limit;
  }
  return equals(column, value, term);
}

function equals<T>(column: Column<T>, value: Value, term: Term): boolean {
  if (typeof value === 'number') {
    const ends = term.value.split('..');
    if (ends.length === 2) {
      const [from, to] = [numberIn(column, ends[0] ?? ''), numberIn(column, ends[1] ?? '')];
      return !(value < from) && !(value > to) && !(Number.isNaN(from) && Number.isNaN(to));
    }
    return (
      value === numberIn(column, term.value) || (term.value !== '' && hasRank(term.value, value))
    );
  }
  const [text, wanted] = [(value ?? '').toLowerCase(), term.value.toLowerCase()];
  return term.operator === '=' ? text === wanted : text.includes(wanted);
}

/** Names the first term of a filter that cannot match because of a mistake, if any. */
export function mistake<T>(columns: readonly Column<T>[], filter: string): string | undefined {
  for (const t of terms(filter)) {
    if (t.field === '' && t.operator === ':') continue;
    const column = columnOf(columns, t.field);
    if (!column) {
      if (isWord(t)) continue;
      return t.field === '' ? 'this list has no durations' : `no column “${t.field}”`;
    }
    const needsNumber = t.operator !== ':' && t.operator !== '=';
    if (needsNumber && t.value !== '' && Number.isNaN(numberIn(column, t.value)))
      return `“${t.value}” is not a number${column.unit ? ' or time' : ''}`;
  }
  return undefined;
}

/** Names of functions contain colons, as in std::sort: such a condition is a word. */
function isWord(t: Term): boolean {
  return t.operator === ':' && t.value.startsWith(':');
}

/** Returns whether a row matches all terms of a filter. */
export function matcher<T>(columns: readonly Column<T>[], filter: string): (row: T) => boolean {
  const tests = terms(filter)
    .filter((t) => t.value !== '')
    .map((t): ((row: T) => boolean) => {
      const column = t.field === '' && t.operator === ':' ? undefined : columnOf(columns, t.field);
      if (column && !isWord(t)) return (row) => holds(column, row, t) !== t.not;
      if (t.field !== '' && !isWord(t)) return () => false;
      const word = (t.field === '' ? t.value : t.field + t.operator + t.value).toLowerCase();
      return (row) =>
        columns.some((c) =>
          String(c.value(row) ?? '')
            .toLowerCase()
            .includes(word),
        ) !== t.not;
    });
  return (row) => tests.every((test) => test(row));
}

/** A completion of the last term of a filter. */
export interface Completion {
  /** The filter with the completed term. */
  filter: string;
  label: string;
  hint: string;
}

const mostCompletions = 8;

/** Returns completions of the last term: names of columns, or values after one. */
export function completions<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  filter: string,
): Completion[] {
  const cut = filter.search(/(?:"[^"]*"?|[^\s"])*$/);
  const [before, token] = [filter.slice(0, cut), filter.slice(cut)];
  const m = /^(-?)(\w*)([:=])"?([^"]*)$/.exec(token);
  if (m) {
    const column = columnOf(columns, m[2]?.toLowerCase() ?? '');
    if (!column || column.unit !== undefined) return [];
    const start = `${before}${m[1] ?? ''}${m[2] ?? ''}${m[3] ?? ':'}`;
    return values(column, rows, (m[4] ?? '').toLowerCase()).map(([text, n]) => ({
      filter: start + (/\s/.test(text) ? `"${text}"` : text) + ' ',
      label: text,
      hint: `${n} ${n === 1 ? 'row' : 'rows'}`,
    }));
  }
  const typed = /^(-?)(\w*)$/.exec(token);
  if (!typed) return [];
  return columns
    .flatMap((c): Completion[] => {
      const name = fieldNames(c).find(
        (n) => /^[\w]+$/.test(n) && n.startsWith((typed[2] ?? '').toLowerCase()),
      );
      if (name === undefined) return [];
      const op = c.unit !== undefined || typeof valueOf(c, rows) === 'number' ? '>' : ':';
      const example = c.unit === 'us' ? '10ms' : c.unit === 's' ? '1:30' : op === '>' ? '3' : '';
      const sign = name === 'rank' ? ':' : op;
      return [
        {
          filter: `${before}${typed[1] ?? ''}${name}${sign}`,
          label: `${name}${sign}${example}`,
          hint: c.title ?? c.header,
        },
      ];
    })
    .slice(0, mostCompletions);
}

function valueOf<T>(column: Column<T>, rows: readonly T[]): Value {
  const row = rows.find((r) => column.value(r) !== undefined);
  return row === undefined ? undefined : column.value(row);
}

/** The most frequent values of a column that contain a text. */
function values<T>(column: Column<T>, rows: readonly T[], text: string): [string, number][] {
  const counts = new Map<string, number>();
  for (const r of rows) {
    const v = String(column.value(r) ?? '');
    if (v !== '' && v.toLowerCase().includes(text)) counts.set(v, (counts.get(v) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, mostCompletions);
}
