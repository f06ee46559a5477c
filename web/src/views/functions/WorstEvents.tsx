import { useRunQuery } from '../../api/index.ts';
import { duration } from '../../format/index.ts';
import { eventPath, useHref } from '../../route/index.ts';
import { When } from '../../ui/index.ts';
import { Part } from './Detail.tsx';

interface Row {
  event_id: string;
  program: number;
  rank: number;
  host: string;
  at_s: number;
  lost_us: number;
  exclusive_us: number;
  status: string;
  function: string;
}

const most = 6;

/** The anomalies of a function by lost time, with links to their evidence. */
export function WorstEvents({ name, program }: { name: string; program: number }) {
  const href = useHref();
  // The server treats the name as a pattern; * and ? also match themselves.
  const { data } = useRunQuery<{ rows: Row[] }>(
    'events',
    { func: name, program, order: 'lost', limit: 4 * most },
    { every: 10_000, keep: true },
  );
  const rows = (data?.rows ?? []).filter((r) => r.function === name).slice(0, most);
  if (rows.length === 0) return null;
  return (
    <Part title="Anomalies by lost time">
      <ul className="function-events">
        {rows.map((r) => (
          <li key={r.event_id}>
            <a href={href({ event: eventPath(r.program, r.event_id) })}>{r.event_id}</a>
            <span>
              rank {r.rank} <span className="muted">{r.host}</span>
            </span>
            <When s={r.at_s} />
            <span title={`own time ${duration(r.exclusive_us)}`}>lost {duration(r.lost_us)}</span>
          </li>
        ))}
      </ul>
    </Part>
  );
}
