/** Formats text as Markdown code, shown literally. */
export function code(text: string): string {
  const ticks = '`'.repeat(Math.max(0, ...(text.match(/`+/g) ?? []).map((t) => t.length)) + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return ticks + pad + text.replace(/\s+/g, ' ') + pad + ticks;
}

/** Escapes a sentence for Markdown. */
export function prose(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\\`<>*_[\]|]/g, '\\$&');
}
