// A statement for other tools.
import { runPath } from '../api/index.ts';

/** A text that a shell takes as one word. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The statement as a command; RUN is the run directory or store, which the page does not know. */
export function asCommand(run: string, sql: string): string {
  return `chimbuko query RUN --run ${quoted(run)} ${quoted(sql)}`;
}

/** The statement as a request; TOKEN is that of the server. */
export function asCurl(base: string, run: string, sql: string, limit: number): string {
  const address = new URL(runPath(run, 'sql'), base).href;
  return [
    `curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json'`,
    `${quoted(address)} -d ${quoted(JSON.stringify({ sql, limit }))}`,
  ].join(' ');
}
