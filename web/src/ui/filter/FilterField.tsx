import { useId, useState, type KeyboardEvent } from 'react';
import type { Column } from '../table/column.ts';
import { completions, mistake } from './parse.ts';
import './filter.css';

const example = 'Words, rank:3, host:node02, lost>10ms, first>1:30; a minus excludes';

/** The filter of a list: words and conditions on columns, with completion. */
export function FilterField<T>(props: {
  columns: readonly Column<T>[];
  rows: readonly T[];
  filter: string;
  onFilter: (filter: string) => void;
}) {
  const { columns, rows, filter } = props;
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const id = useId();
  const offered = open ? completions(columns, rows, filter) : [];
  const wrong = mistake(columns, filter);
  const change = (text: string) => {
    props.onFilter(text);
    setAt(-1);
  };
  const choose = (index: number) => {
    const chosen = offered[index];
    if (chosen) change(chosen.filter);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      setOpen(true);
      const by = event.key === 'ArrowDown' ? 1 : -1;
      setAt(Math.max(-1, Math.min(offered.length - 1, at + by)));
    } else if ((event.key === 'Enter' || event.key === 'Tab') && open && at >= 0) {
      choose(at);
    } else if (event.key === 'Escape' && open) {
      setOpen(false);
      setAt(-1);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span className="filter">
      <input
        className="field"
        type="search"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={offered.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong === undefined ? undefined : `${id}-wrong`}
        placeholder="Filter… rank:3 >10ms"
        aria-label="Filter rows"
        title={example}
        autoComplete="off"
        spellCheck={false}
        value={filter}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={keys}
        onChange={(e) => {
          setOpen(true);
          change(e.target.value);
        }}
      />
      <ul
        id={`${id}-list`}
        role="listbox"
        aria-label="Completions"
        className="filter-list panel"
        hidden={offered.length === 0}
      >
        {offered.map((c, i) => (
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events -- the field handles keys
          <li
            key={c.label}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onPointerDown={(e) => e.preventDefault()} // keeps the focus in the field
            onClick={() => choose(i)}
          >
            <code>{c.label}</code> <span className="muted">{c.hint}</span>
          </li>
        ))}
      </ul>
      {wrong !== undefined && (
        <span id={`${id}-wrong`} role="alert" className="filter-wrong">
          {wrong}
        </span>
      )}
    </span>
  );
}
