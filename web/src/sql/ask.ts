// SQL queries. Integers stay exact even if a JavaScript number cannot hold them.
import { Problem, runPath, type SQLAnswer, type SQLProblem } from '../api/index.ts';

/** A value of a result; integers too large for a number are strings. */
export type Cell = string | number | boolean | null | object;

/** A result with displayable values. */
export interface Result extends Omit<SQLAnswer, 'rows'> {
  rows: readonly (readonly Cell[])[];
}

/** A problem with an optional position in the statement; lines and columns start at 1. */
export class SqlProblem extends Problem {
  readonly line: number;
  readonly column: number;

  constructor(body: SQLProblem, status: number) {
    // The store prefixes the error with its file name.
    super(body.error.replace(/^.*?: ask: /, ''), body.hint ?? '', status);
    this.line = body.line ?? 0;
    this.column = body.column ?? 0;
  }
}

const stringsAndLongNumbers = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Parses JSON; integers that a number cannot hold exactly become strings. */
export function parseExact(text: string): unknown {
  return JSON.parse(
    text.replace(stringsAndLongNumbers, (part) =>
      part.startsWith('"') || Number.isSafeInteger(Number(part)) ? part : `"${part}"`,
    ),
  );
}

async function send(run: string, path: string, body: object, signal?: AbortSignal) {
  let answer: Response;
  try {
    answer = await fetch(runPath(run, path), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      credentials: 'same-origin',
      signal: signal ?? null,
    });
  } catch (err) {
    if (err instanceof DOMException && err.name === 'AbortError') throw err;
    throw new Problem(
      'cannot reach the server',
      'check that chimbuko is running and that the tunnel is open',
    );
  }
  if (answer.ok) return answer;
  let problem: SQLProblem;
  try {
    problem = (await answer.json()) as SQLProblem;
  } catch {
    throw new Problem(
      `the server returned ${answer.status} ${answer.statusText}`,
      '',
      answer.status,
    );
  }
  throw new SqlProblem(problem, answer.status);
}

/** Runs one statement. */
export async function askSQL(
  run: string,
  sql: string,
  limit: number,
  signal?: AbortSignal,
): Promise<Result> {
  const answer = await send(run, 'sql', { sql, limit }, signal);
  return parseExact(await answer.text()) as Result;
}

/** The outcome of an export. */
export interface Exported {
  blob: Blob;
  rows: number;
  cut: boolean;
}

/** Exports all rows of a statement as a file. */
export async function exportSQL(
  run: string,
  sql: string,
  format: 'csv' | 'parquet',
): Promise<Exported> {
  const answer = await send(run, 'sql/export', { sql, format });
  return {
    blob: await answer.blob(),
    rows: Number(answer.headers.get('Chimbuko-Rows')),
    cut: answer.headers.get('Chimbuko-Cut') === 'true',
  };
}

/** The offset of a line and column in a text, at most its length. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  if (line < 1 || line > lines.length) return text.length;
  const before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const inLine = Array.from(lines[line - 1] ?? '')
    .slice(0, Math.max(0, column - 1))
    .join('').length;
  return before + inLine;
}
