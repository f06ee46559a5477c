import { useEffect, useId, useState, type KeyboardEvent } from 'react';
import { useRunQuery, type Found, type FoundList } from '../api/index.ts';
import { follow, currentRoute, parse, write } from '../route/index.ts';

/** A text that has not changed for a moment. */
function useSettled(text: string, ms: number): string {
  const [settled, set] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => set(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return settled;
}

/** Goes where a found thing is; the lasting parameters stay. */
function open(found: Found): void {
  const { view, event, query } = parse(`#${found.route.replace(/^#/, '')}`);
  location.hash = write(follow(currentRoute(), { view, event, query }));
}

/** The search box: functions, hosts, rank:37, ids of events, issues. */
export function Search() {
  const [text, setText] = useState('');
  const [focus, setFocus] = useState(false);
  const [at, setAt] = useState(0);
  const id = useId();
  const asked = useSettled(text.trim(), 150);
  const { data, problem, loading } = useRunQuery<FoundList>(
    asked === '' ? undefined : 'search',
    { q: asked, limit: 12 },
    { keep: true },
  );
  const rows = asked === '' ? [] : (data?.rows ?? []);
  const shown = focus && text.trim() !== '';
  const choose = (found: Found | undefined) => {
    if (!found) return;
    open(found);
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
        aria-label="Search functions, hosts, rank:37, events, issues"
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
      <ul id={id} role="listbox" aria-label="Found" className="found panel" hidden={!shown}>
        {rows.map((found, i) => (
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events -- keys are taken by the box
          <li
            key={`${found.kind}${found.route}`}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onMouseDown={(e) => e.preventDefault()}
            onClick={() => choose(found)}
          >
            <span className="found-kind">{found.kind}</span>
            <span className="name">{found.text}</span>
          </li>
        ))}
        {rows.length === 0 && (
          <li className="found-none" role="option" aria-selected={false} aria-disabled="true">
            {problem
              ? `${problem.message}. ${problem.hint}`
              : loading || asked !== text.trim()
                ? 'searching…'
                : 'Nothing has this name. Patterns such as *halo* and rank:3 work, too.'}
          </li>
        )}
      </ul>
    </div>
  );
}
