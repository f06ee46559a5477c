import type { Comparables } from '../../api/index.ts';
import { go } from '../../route/index.ts';
import { runText } from './pair.ts';

/** Selects A and B from the server's runs. */
export function Picker({ list, a, b }: { list: Comparables; a: string; b: string }) {
  return (
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
    </div>
  );
}

function Side(props: { name: 'A' | 'B'; title: string; list: Comparables; value: string }) {
  const { name, list, value } = props;
  const one = list.rows.find((r) => r.id === value);
  return (
    <label className={`compare-side ${name.toLowerCase()}`} title={props.title}>
      <strong>{name}</strong>
      <select
        className="field"
        aria-label={`Run ${name}`}
        value={value}
        onChange={(e) => go({ query: { [name.toLowerCase()]: e.target.value } })}
      >
        {!one && <option value={value}>{value.replace(/^\d+:/, '')} (missing)</option>}
        {list.rows.map((r) => (
          <option key={r.id} value={r.id}>
            {runText(r)}
          </option>
        ))}
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
