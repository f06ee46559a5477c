// A statement for other tools.
import { runPath } from '../api/index.ts';

/** A text that a shell takes as one word. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The statement as a command; without a place RUN stands for the run directory or store. */
export function asCommand(place: string | undefined, run: string, sql: string): string {
  return `chimbuko query ${place === undefined ? 'RUN' : quoted(place)} --run ${quoted(run)} ${quoted(sql)}`;
}

/** The statement as a request; TOKEN is that of the server. */
export function asCurl(base: string, run: string, sql: string, limit: number): string {
  const address = new URL(runPath(run, 'sql'), base).href;
  return [
    `curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json'`,
    `${quoted(address)} -d ${quoted(JSON.stringify({ sql, limit }))}`,
  ].join(' ');
}
