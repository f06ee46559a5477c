// Sample queries: the examples in docs/sql.md, which run on every store.
import documentation from '../../../docs/sql.md?raw';

export interface Snippet {
  name: string;
  sql: string;
}

/** Extracts examples from Markdown: headings followed by a statement. */
export function examplesOf(markdown: string): Snippet[] {
  const [, examples = ''] = markdown.split(/^## Examples$/m);
  return examples
    .split(/^### /m)
    .slice(1)
    .flatMap((part) => {
      const sql = /^```sql\n([\s\S]*?)^```$/m.exec(part)?.[1];
      const name = part.slice(0, part.indexOf('\n')).trim();
      return sql === undefined ? [] : [{ name, sql: sql.trimEnd() }];
    });
}

/** The examples for a run instead of the latest. */
export function builtIn(run: string): Snippet[] {
  const chosen = `(SELECT run FROM runs WHERE name = ${literal(run)})`;
  return examplesOf(documentation).map((s) => ({
    name: s.name,
    sql: s.sql.replaceAll('(SELECT max(run) FROM runs)', () => chosen),
  }));
}

/** Quotes text as an SQL string. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
