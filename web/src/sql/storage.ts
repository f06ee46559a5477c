// The query history and saved statements in local storage, if available.
import type { Snippet } from './snippets.ts';

const historyKey = 'chimbuko-sql-history';
const snippetKey = 'chimbuko-sql-snippets';
const mostAsked = 50;
const mostSaved = 200;

function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? '[]');
  } catch {
    return [];
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // It is full, or not allowed: then nothing is remembered.
  }
}

/** The history, newest first. */
export function asked(): string[] {
  const list = read(historyKey);
  return Array.isArray(list) ? list.filter((s): s is string => typeof s === 'string') : [];
}

/** Adds a statement to the history. */
export function remember(sql: string): void {
  write(historyKey, [sql, ...asked().filter((s) => s !== sql)].slice(0, mostAsked));
}

/** The saved statements by name. */
export function saved(): Snippet[] {
  const list = read(snippetKey);
  if (!Array.isArray(list)) return [];
  return (list as Partial<Snippet>[])
    .filter((s): s is Snippet => typeof s.name === 'string' && typeof s.sql === 'string')
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** Saves a statement under a new or existing name. */
export function save(name: string, sql: string): void {
  write(snippetKey, [{ name, sql }, ...saved().filter((s) => s.name !== name)].slice(0, mostSaved));
}

/** Removes a saved statement. */
export function forget(name: string): void {
  write(
    snippetKey,
    saved().filter((s) => s.name !== name),
  );
}
