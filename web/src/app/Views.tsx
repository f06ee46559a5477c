import { useState, type SyntheticEvent } from 'react';
import { currentRoute, parse, useRoute, write } from '../route/index.ts';
import { Menu } from '../ui/index.ts';
import { ViewsIcon } from './icons.tsx';
import { readViews, storeViews, type SavedView } from './savedViews.ts';

/** Saves the address of the view under a name, with its filters and order, and opens saved ones. */
export function Views() {
  const { query } = useRoute();
  const [views, setViews] = useState(readViews);
  const [name, setName] = useState('');
  const keep = (next: readonly SavedView[]) => {
    setViews(next);
    storeViews(next);
  };
  const save = (event: SyntheticEvent) => {
    event.preventDefault();
    const title = name.trim();
    if (title === '') return;
    const route = currentRoute();
    // A saved view is for any run.
    const at = write({ ...route, query: { ...route.query, run: '' } });
    keep([...views.filter((v) => v.name !== title), { name: title, at }]);
    setName('');
  };
  /** The address of a saved view in the run that is shown. */
  const open = (at: string) => {
    const route = parse(at);
    return write(query.run ? { ...route, query: { ...route.query, run: query.run } } : route);
  };
  return (
    <Menu
      label={
        <>
          <ViewsIcon /> <span className="bar-word">Views</span>
        </>
      }
    >
      {views.length === 0 && <p className="muted small views-none">No saved views.</p>}
      <ul className="views">
        {views.map((v) => (
          <li key={v.name}>
            <a className="menu-item" href={open(v.at)}>
              {v.name}
            </a>
            <button
              type="button"
              className="button quiet"
              aria-label={`Delete view ${v.name}`}
              onClick={() => keep(views.filter((o) => o !== v))}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <form className="views-save" onSubmit={save}>
        <input
          className="field"
          aria-label="Name of the view"
          placeholder="Name of this view"
          value={name}
          maxLength={60}
          onChange={(e) => setName(e.target.value)}
        />
        <button type="submit" className="button">
          Save
        </button>
      </form>
    </Menu>
  );
}
