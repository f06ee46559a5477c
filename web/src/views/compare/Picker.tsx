import type { Comparables } from '../../api/index.ts';
import { go, text, useParam } from '../../route/index.ts';
import { Neighbors } from './Neighbors.tsx';
import { runText } from './pair.ts';

const noText = text('');

/** Selects A and B from the server's runs. */
export function Picker({ list, a, b }: { list: Comparables; a: string; b: string }) {
  const [browse, setBrowse] = useParam('browse', noText);
  const open = browse !== '';
  return (
    <>
      <div className="compare-picker">
        <Side name="A" title="Reference run" list={list} value={a} />
        <button
          type="button"
          className="button"
          title="Swap A and B"
          aria-label="Swap A and B"
          onClick={() => go({ query: { a: b, b: a } })}
        >
          ⇄
        </button>
        <Side name="B" title="Inspected run" list={list} value={b} />
        {list.neighbors.length > 0 && (
          <button
            type="button"
            className="button"
            aria-expanded={open}
            onClick={() => setBrowse(open ? '' : '1')}
          >
            Other runs…
          </button>
        )}
      </div>
      {open && <Neighbors list={list} />}
    </>
  );
}

function Side(props: { name: 'A' | 'B'; title: string; list: Comparables; value: string }) {
  const { name, list, value } = props;
  const one = [...list.rows, ...list.neighbors].find((r) => r.id === value);
  return (
    <label className={`compare-side ${name.toLowerCase()}`} title={props.title}>
      <strong>{name}</strong>
      <select
        className="field"
        aria-label={`Run ${name}`}
        value={value}
        onChange={(e) => go({ query: { [name.toLowerCase()]: e.target.value } })}
      >
        {!one && <option value={value}>{value.replace(/^\w+:/, '')} (missing)</option>}
        {list.rows.map((r) => (
          <option key={r.id} value={r.id}>
            {runText(r)}
          </option>
        ))}
        {list.neighbors.length > 0 && (
          <optgroup label={`In ${list.neighbors_dir ?? ''}`}>
            {list.neighbors.map((r) => (
              <option key={r.id} value={r.id}>
                {r.program === undefined ? r.name : `${r.name} (${r.program})`}
              </option>
            ))}
          </optgroup>
        )}
      </select>
      {one?.started !== undefined && (
        <time className="muted" dateTime={one.started}>
          {new Date(one.started).toLocaleString()}
        </time>
      )}
      {one && one.state !== 'finished' && <span className="muted">{one.state}</span>}
    </label>
  );
}
