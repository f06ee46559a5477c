import { useLive, useRunQuery, type FindingList } from '../api/index.ts';
import { clock, count, elide } from '../format/index.ts';
import { go, useRoute, useSpan } from '../route/index.ts';
import { fold, narrow, type Narrowing } from '../views/findings/select.ts';

/** A filter in the address, and what findings are narrowed by without it. */
interface Chip {
  text: string;
  keys: string[];
  without: Partial<Narrowing>;
}

function useChips(): Chip[] {
  const { query } = useRoute();
  const { overview } = useLive();
  const chips: Chip[] = [];
  const [t0, t1] = [query.t0, query.t1];
  if (t0 !== undefined || t1 !== undefined) {
    const span = Number(t1 ?? overview?.length_s ?? 0) - Number(t0 ?? 0);
    const from = clock(Number(t0 ?? 0), span);
    const to = t1 === undefined ? 'now' : clock(Number(t1), span);
    const without = { t0: undefined, t1: undefined };
    chips.push({ text: `${from} to ${to}`, keys: ['t0', 't1'], without });
  }
  if (query.host) {
    chips.push({ text: `host ${elide(query.host, 24)}`, keys: ['host'], without: { host: '' } });
  }
  if (query.rank) {
    chips.push({ text: `rank ${elide(query.rank, 24)}`, keys: ['rank'], without: { rank: '' } });
  }
  if (query.program && (overview?.programs.length ?? 0) < 2) {
    const text = `program ${query.program}`;
    chips.push({ text, keys: ['program'], without: { program: '' } });
  }
  return chips;
}

/** Counts the findings that the filters of the address select, with changes to them; undefined while they are unknown. */
function useCounts(wanted: boolean): ((change: Partial<Narrowing>) => number) | undefined {
  const { query } = useRoute();
  const { t0, t1 } = useSpan();
  const result = useRunQuery<FindingList>(wanted ? 'findings' : undefined, {}, { every: 3000 });
  const rows = result.data?.rows;
  if (!rows) return undefined;
  const { host = '', rank = '', program = '' } = query;
  const filters = { kinds: [], host, rank, program, t0, t1 };
  const listed = { muted: false, minor: false, withdrawn: false };
  return (change) => fold(narrow(rows, { ...filters, ...listed, ...change })).top.length;
}

/** The active filters, each with the findings that it leaves and a button that removes it. */
export function Chips() {
  const chips = useChips();
  const counts = useCounts(chips.length > 0);
  if (chips.length === 0) return null;
  return (
    <ul className="chips" aria-label="Active filters">
      {chips.map((c) => {
        const left = counts && `${count(counts({}))} of ${count(counts(c.without))}`;
        return (
          <li key={c.text}>
            <button
              type="button"
              className="chip"
              aria-label={`${c.text}${left === undefined ? '' : `, ${left} findings`}: remove`}
              title={left === undefined ? 'Remove' : `Leaves ${left} findings; remove`}
              onClick={() => go({ query: Object.fromEntries(c.keys.map((k) => [k, undefined])) })}
            >
              {c.text}
              {left !== undefined && <span className="muted"> {left}</span>}{' '}
              <span aria-hidden="true">×</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
