import { quoted } from '../format/index.ts';

// Formats statements for other tools.
import { runPath } from '../api/index.ts';

/** The statement as a command; RUN stands for an unknown run directory or store. */
export function asCommand(place: string | undefined, run: string, sql: string): string {
  return `chimbuko query ${place === undefined ? 'RUN' : quoted(place)} --run ${quoted(run)} ${quoted(sql)}`;
}

/** The statement as a curl command; TOKEN stands for the server's token. */
export function asCurl(base: string, run: string, sql: string, limit: number): string {
  const address = new URL(runPath(run, 'sql'), base).href;
  return [
    `curl -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json'`,
    `${quoted(address)} -d ${quoted(JSON.stringify({ sql, limit }))}`,
  ].join(' ');
}
