import { useId, useState } from 'react';
import { matching, schema, type SchemaTable } from './schema.ts';

/** The tables and views with their columns; a click on a name passes it on. */
export function Schema(props: { onName: (name: string) => void }) {
  const [search, setSearch] = useState('');
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const groups = matching(schema, search);
  const toggle = (name: string) =>
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  return (
    <section className="sql-schema" aria-label="Schema">
      <input
        type="search"
        className="field"
        placeholder="Table or column"
        aria-label="Find a table or column"
        value={search}
        onChange={(e) => setSearch(e.target.value)}
      />
      <div className="sql-tables">
        {groups.length === 0 && <p className="muted">No such table or column.</p>}
        {groups.map((g) => (
          <div key={g.title}>
            <h3>{g.title}</h3>
            <ul>
              {g.tables.map((t) => (
                <TableRow
                  key={t.name}
                  table={t}
                  search={search.trim().toLowerCase()}
                  open={open.has(t.name)}
                  onToggle={() => toggle(t.name)}
                  onName={props.onName}
                />
              ))}
            </ul>
          </div>
        ))}
      </div>
    </section>
  );
}

/** A table, and its columns if it is open. A search for a column shows that one. */
function TableRow(props: {
  table: SchemaTable;
  search: string;
  open: boolean;
  onToggle: () => void;
  onName: (name: string) => void;
}) {
  const { table, search, open, onName } = props;
  const id = useId();
  const found = search === '' ? [] : table.columns.filter((c) => c.name.includes(search));
  const columns = open ? table.columns : found;
  return (
    <li>
      <div className="sql-table-name">
        <button
          type="button"
          className="button quiet"
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          aria-label={`Columns of ${table.name}`}
          onClick={props.onToggle}
        >
          <span aria-hidden="true">{open ? '▾' : '▸'}</span>
        </button>
        <button
          type="button"
          className="sql-name"
          title={table.meaning === '' ? 'insert' : table.meaning}
          onClick={() => onName(table.name)}
        >
          {table.name}
        </button>
      </div>
      {columns.length > 0 && (
        <ul id={id} className="sql-columns" aria-label={table.name}>
          {columns.map((c) => (
            <li key={c.name}>
              <button type="button" className="sql-name" onClick={() => onName(c.name)}>
                {c.name}
              </button>
              <span className="sql-type"> {c.type}</span>
              {c.meaning !== '' && <div className="sql-meaning">{c.meaning}</div>}
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
