/** Replaces us, as the server writes it, with µs. */
export function micro(text: string): string {
  return text.replace(/(\d) us\b/g, '$1 µs');
}

/** Quotes text for a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Quotes text for a shell if it needs quotes. */
export function shellWord(text: string): string {
  return /^[\w./,:=-]+$/.test(text) ? text : quoted(text);
}
