/** A sentence of the server, which writes us, with the sign for microseconds that the page has elsewhere. */
export function micro(text: string): string {
  return text.replace(/(\d) us\b/g, '$1 µs');
}
