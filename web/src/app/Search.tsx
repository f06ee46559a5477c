import { useEffect, useId, useState, type KeyboardEvent } from 'react';
import { useRunQuery, type Found, type FoundList } from '../api/index.ts';
import { follow, currentRoute, parse, write } from '../route/index.ts';

/** Returns text after it has stayed unchanged for a moment. */
function useSettled(text: string, ms: number): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return settled;
}

/** Navigates to a search result and keeps the lasting parameters. */
function open(match: Found): void {
  const { view, event, query } = parse(`#${match.route.replace(/^#/, '')}`);
  location.hash = write(follow(currentRoute(), { view, event, query }));
}

/** The search box for functions, hosts, ranks (rank:37), event IDs and findings. */
export function Search() {
  const [text, setText] = useState('');
  const [focus, setFocus] = useState(false);
  const [at, setAt] = useState(0);
  const id = useId();
  const result = useSettled(text.trim(), 150);
  const { data, problem, loading } = useRunQuery<FoundList>(
    result === '' ? undefined : 'search',
    { q: result, limit: 12 },
    { keep: true },
  );
  const rows = result === '' ? [] : (data?.rows ?? []);
  const shown = focus && text.trim() !== '';
  const choose = (match: Found | undefined) => {
    if (!match) return;
    open(match);
    setText('');
    (document.activeElement as HTMLElement | null)?.blur();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setAt(Math.min(rows.length - 1, at + 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1));
    else if (event.key === 'Enter') choose(rows[at]);
    else if (event.key === 'Escape') {
      setText('');
      (event.target as HTMLElement).blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className="search">
      <input
        id="search"
        className="field"
        type="search"
        role="combobox"
        autoComplete="off"
        placeholder="Search  /"
        aria-label="Search functions, hosts, rank:37, events, findings"
        aria-expanded={shown}
        aria-controls={id}
        aria-activedescendant={shown && rows[at] ? `${id}-${at}` : undefined}
        value={text}
        onChange={(e) => {
          setText(e.target.value);
          setAt(0);
        }}
        onKeyDown={keys}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
      />
      <ul
        id={id}
        role="listbox"
        aria-label="Search results"
        className="found panel"
        hidden={!shown}
      >
        {rows.map((match, i) => (
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events -- the search box handles keys
          <li
            key={`${match.kind}${match.route}`}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseDown={(e) => e.preventDefault()}
            onClick={() => choose(match)}
          >
            <span className="found-kind">{match.kind}</span>
            <span className="name">{match.text}</span>
          </li>
        ))}
        {rows.length === 0 && (
          <li className="found-none" role="option" aria-selected={false} aria-disabled="true">
            {problem
              ? `${problem.message}. ${problem.hint}`
              : loading || result !== text.trim()
                ? 'searching…'
                : 'No matches. Try a pattern such as *halo* or rank:3.'}
          </li>
        )}
      </ul>
    </div>
  );
}
