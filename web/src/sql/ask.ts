// Asking in SQL. Whole numbers come back in full, also where a number of JavaScript
// cannot hold them.
import { Problem, runPath, type SQLAnswer, type SQLProblem } from '../api/index.ts';

/** A value of an answer: whole numbers that are too large for a number are texts. */
export type Cell = string | number | boolean | null | object;

/** An answer with values that can be shown. */
export interface Result extends Omit<SQLAnswer, 'rows'> {
  rows: readonly (readonly Cell[])[];
}

/** A problem that may know where in the statement it is; lines and columns count from 1. */
export class SqlProblem extends Problem {
  readonly line: number;
  readonly column: number;

  constructor(told: SQLProblem, status: number) {
    // The store says of itself what file it is, before what it says of the statement.
    super(told.error.replace(/^.*?: ask: /, ''), told.hint ?? '', status);
    this.line = told.line ?? 0;
    this.column = told.column ?? 0;
  }
}

const stringsAndLongNumbers = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Reads JSON; whole numbers that a number cannot hold exactly become texts. */
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
      'the server does not answer',
      'is chimbuko still running, and the tunnel to it open?',
    );
  }
  if (answer.ok) return answer;
  let told: SQLProblem;
  try {
    told = (await answer.json()) as SQLProblem;
  } catch {
    throw new Problem(`the answer was ${answer.status} ${answer.statusText}`, '', answer.status);
  }
  throw new SqlProblem(told, answer.status);
}

/** Asks one statement. */
export async function askSQL(
  run: string,
  sql: string,
  limit: number,
  signal?: AbortSignal,
): Promise<Result> {
  const answer = await send(run, 'sql', { sql, limit }, signal);
  return parseExact(await answer.text()) as Result;
}

/** What an export gave. */
export interface Exported {
  blob: Blob;
  rows: number;
  cut: boolean;
}

/** The answer to a statement as a file, with all its rows. */
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

/** Where in a text a line and column are; its end for what is beyond. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  if (line < 1 || line > lines.length) return text.length;
  const before = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const inLine = Array.from(lines[line - 1] ?? '')
    .slice(0, Math.max(0, column - 1))
    .join('').length;
  return before + inLine;
}
