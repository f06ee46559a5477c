/** Replaces us, as the server writes it, with µs. */
export function micro(text: string): string {
  return text.replace(/(\d) us\b/g, '$1 µs');
}
