// The tables and views of a store: the documentation lists them with all columns.
import documentation from '../../../docs/sql.md?raw';

export interface SchemaColumn {
  name: string;
  /** Empty if it depends on the store. */
  type: string;
  /** Plain text; may be empty. */
  meaning: string;
}

export interface SchemaTable {
  name: string;
  meaning: string;
  columns: readonly SchemaColumn[];
}

/** Tables under a heading of the documentation, such as "Views". */
export interface SchemaGroup {
  title: string;
  tables: readonly SchemaTable[];
}

const marks = /`([^`]+)`/g;

/** Removes the marks of Markdown. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const names = (markdown: string) => [...markdown.matchAll(marks)].map((m) => m[1] ?? '');

/** Reads tables and columns from Markdown: headings with names, followed by tables of columns. */
export function schemaOf(markdown: string): SchemaGroup[] {
  const [text = ''] = markdown.split(/^## Examples$/m);
  const known = new Map<string, SchemaColumn>(); // as "as above" refers to them
  const terms = termsOf(text);
  return text
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [title = '', ...sections] = part.split(/^### /m);
      return {
        title: title.slice(0, title.indexOf('\n')).trim(),
        tables: sections.flatMap((s) => tablesOf(s, known, terms)),
      };
    })
    .filter((g) => g.tables.length > 0);
}

/** Meanings of names that many tables have. */
function termsOf(text: string): ReadonlyMap<string, string> {
  const [, part = ''] = text.split(/^## Terms$/m);
  const rows = part.split(/^## /m)[0]?.split('\n') ?? [];
  return new Map(
    rows.flatMap((line) => {
      const cells = line.split('|');
      return names(cells[1] ?? '').map((name) => [name, plain(cells[2] ?? '')] as const);
    }),
  );
}

function tablesOf(
  section: string,
  known: Map<string, SchemaColumn>,
  terms: ReadonlyMap<string, string>,
): SchemaTable[] {
  const [heading = '', ...lines] = section.split('\n');
  const columns = lines.flatMap((line) => {
    const cells = line.split('|').map((c) => c.trim());
    if (cells.length !== 5 || !line.includes('`')) return [];
    const [, list = '', type = '', meaning = ''] = cells;
    return names(list).map((name) => {
      const refers = meaning.startsWith('as ') ? known.get(name) : undefined;
      const vague = list.includes(',') || meaning === '' || meaning.includes('see above');
      const column = {
        name,
        type: type === '' ? (known.get(name)?.type ?? '') : type,
        meaning: refers?.meaning ?? (vague ? terms.get(name) : undefined) ?? plain(meaning),
      };
      if (!known.has(name)) known.set(name, column);
      return column;
    });
  });
  const meaning = plain(
    lines
      .slice(
        0,
        lines.findIndex((l) => l.startsWith('|')),
      )
      .join('\n'),
  );
  return names(heading).map((name) => ({ name, meaning, columns }));
}

export const schema = schemaOf(documentation);

const quotedNames = new Set(
  schema
    .flatMap((g) => g.tables)
    .flatMap((t) => t.columns)
    .filter((c) => c.meaning.includes('quote the name'))
    .map((c) => c.name),
);

/** The name as a statement needs it. */
export function nameInSQL(name: string): string {
  return quotedNames.has(name) ? `"${name}"` : name;
}

/** Inserts a name in place of a selection, apart from the words around it. */
export function inserted(
  text: string,
  from: number,
  to: number,
  name: string,
): { text: string; at: number } {
  const before = text.slice(0, from);
  const after = text.slice(to);
  const lead = /[\w"),*]$/.test(before) ? ' ' : '';
  const trail = /^[\w"(*]/.test(after) ? ' ' : '';
  const head = before + lead + name;
  return { text: head + trail + after, at: head.length };
}

/** The groups with the tables whose name or columns contain a text. */
export function matching(groups: readonly SchemaGroup[], search: string): SchemaGroup[] {
  const s = search.trim().toLowerCase();
  return groups
    .map((g) => ({
      title: g.title,
      tables: g.tables.filter(
        (t) => t.name.includes(s) || t.columns.some((c) => c.name.includes(s)),
      ),
    }))
    .filter((g) => g.tables.length > 0);
}
