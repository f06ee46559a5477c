// Questions to begin with: the examples of docs/sql.md, which run on every store, and
// what the reader saved.
import documentation from '../../../docs/sql.md?raw';

export interface Snippet {
  name: string;
  sql: string;
}

/** The examples of a text in Markdown: headings with a statement below. */
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

/** The examples, about a run instead of the latest. */
export function builtIn(run: string): Snippet[] {
  const chosen = `(SELECT run FROM runs WHERE name = ${literal(run)})`;
  return examplesOf(documentation).map((s) => ({
    name: s.name,
    sql: s.sql.replaceAll('(SELECT max(run) FROM runs)', () => chosen),
  }));
}

/** A text as SQL has it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
