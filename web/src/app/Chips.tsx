import { useLive } from '../api/index.ts';
import { clock, elide } from '../format/index.ts';
import { go, useRoute } from '../route/index.ts';

/** The active filters, each with a button that removes it. */
export function Chips() {
  const { query } = useRoute();
  const { overview } = useLive();
  const chips: { text: string; keys: string[] }[] = [];
  const [t0, t1] = [query.t0, query.t1];
  if (t0 !== undefined || t1 !== undefined) {
    const span = Number(t1 ?? overview?.length_s ?? 0) - Number(t0 ?? 0);
    const from = clock(Number(t0 ?? 0), span);
    const to = t1 === undefined ? 'now' : clock(Number(t1), span);
    chips.push({ text: `${from} to ${to}`, keys: ['t0', 't1'] });
  }
  if (query.host) chips.push({ text: `host ${elide(query.host, 24)}`, keys: ['host'] });
  if (query.rank) chips.push({ text: `rank ${elide(query.rank, 24)}`, keys: ['rank'] });
  if (query.program && (overview?.programs.length ?? 0) < 2) {
    chips.push({ text: `program ${query.program}`, keys: ['program'] });
  }
  if (chips.length === 0) return null;
  return (
    <ul className="chips" aria-label="Active filters">
      {chips.map((c) => (
        <li key={c.text}>
          <button
            type="button"
            className="chip"
            aria-label={`${c.text}: remove`}
            onClick={() => go({ query: Object.fromEntries(c.keys.map((k) => [k, undefined])) })}
          >
            {c.text} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
