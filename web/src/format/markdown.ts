/** A text as code of Markdown, which shows it as it is. */
export function code(text: string): string {
  const ticks = '`'.repeat(Math.max(0, ...(text.match(/`+/g) ?? []).map((t) => t.length)) + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return ticks + pad + text.replace(/\s+/g, ' ') + pad + ticks;
}

/** A sentence for Markdown: what would be markup is shown as it is. */
export function prose(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/[\\`<>*_[\]|]/g, '\\$&');
}
