import type { RankRow, RankTable, SlowPlace } from '../../api/index.ts';
import { count, duration, plural } from '../../format/index.ts';
import { RankFunctions, SlowCounters, SlowFunctions } from '../../peers/index.ts';
import { useHref, type Target } from '../../route/index.ts';
import { patternText, ratioText, rowRanks, share, span } from './ratio.ts';

/** The slow peer that a row belongs to. */
export function slowOf(table: RankTable, row: RankRow): SlowPlace | undefined {
  return table.slow.find(
    (s) =>
      s.program === row.program &&
      s.finding_key === row.finding_key &&
      s.pattern === row.pattern &&
      s.ranks.some((r) => r >= row.first_rank && r <= row.last_rank),
  );
}

/** A row in words, with links to its finding, its ranks and its functions. */
export function RankDetail(props: {
  table: RankTable;
  row: RankRow;
  programs: boolean;
  onClose: () => void;
}) {
  const { table, row, programs } = props;
  const href = useHref();
  const slow = row.pattern === undefined ? undefined : slowOf(table, row);
  const { from, to } = span(table);
  const which = programs ? { program: row.program } : {};
  const toFindings: Target = { view: 'findings', query: { rank: rowRanks(row), ...which } };
  const toRanks: Target = {
    query: { by: 'rank', rank: rowRanks(row), host: row.host, sel: undefined, ...which },
  };
  return (
    <aside className="panel rank-detail" aria-label={row.place}>
      <header className="panel-head">
        <h2>{row.place}</h2>
        <span className="push" />
        <button type="button" className="button quiet" aria-label="Close" onClick={props.onClose}>
          ×
        </button>
      </header>
      <div className="rank-body">
        <p>{describe(row, slow, to - from)}</p>
        <ul className="rank-links">
          {row.finding_key !== undefined && row.finding !== undefined && (
            <li>
              <a href={href({ view: 'findings', query: { sel: row.finding_key } })}>
                Finding {count(row.finding)}
              </a>
            </li>
          )}
          {row.ranks > 1 && (
            <li>
              <a href={href(toRanks)}>Show its {plural(row.ranks, 'rank')}</a>
            </li>
          )}
          <li>
            <a href={href(toFindings)}>
              Functions that lost time on {row.ranks > 1 ? 'them' : 'it'}
            </a>
          </li>
          {typeof slow?.twin === 'number' && (
            <li>
              <a
                href={href({
                  query: { by: 'rank', rank: slow.twin, host: undefined, sel: undefined },
                })}
              >
                Peer with a ratio near 1: rank {slow.twin}
              </a>
            </li>
          )}
        </ul>
        {slow && <SlowFunctions functions={slow.functions} />}
        {slow && <SlowCounters counters={slow.counters} />}
        {row.missing < row.ranks && <RankFunctions select={functionsOf(table, row)} />}
      </div>
    </aside>
  );
}

/** The parameters that select the functions of a row. */
export function functionsOf(table: RankTable, row: RankRow) {
  return {
    by: table.by === 'device' ? 'device' : 'rank',
    program: row.program,
    rank: rowRanks(row),
    ...(row.host !== '' && { host: row.host }),
    ...(row.role !== 0 && table.by === 'role' && { role: row.role }),
    ...(row.thread !== undefined && table.by === 'device' && { thread: row.thread }),
  };
}

/** A row in a sentence. */
export function describe(row: RankRow, slow: SlowPlace | undefined, length: number): string {
  if (row.missing === row.ranks)
    return `No data of ${plural(row.ranks, 'rank')}: nothing is known about ${row.ranks === 1 ? 'it' : 'them'}.`;
  const parts: string[] = [];
  const peers = plural(slow?.peers ?? row.peers, 'peer');
  if (slow && row.pattern === 'role')
    parts.push(
      `${slow.place} takes ${ratioText(slow.ratio)} as long as other roles: the work is divided unevenly, and no single rank is responsible.`,
    );
  else if (slow)
    parts.push(
      `${slow.place} takes ${ratioText(slow.ratio)} as long as its ${peers} for equal work (${patternText(row, length)}).`,
    );
  else if (row.ratio === null) parts.push('It has no peers to compare it with.');
  else
    parts.push(
      `It takes ${ratioText(row.ratio)} as long as its ${peers} for equal work, which is within the usual spread.`,
    );
  if (slow?.weak === true)
    parts.push(
      'The evidence is weak: it has few peers, and was compared with its own past as well.',
    );
  if (row.saved_us > 0)
    parts.push(
      `The run would be ${duration(row.saved_us)} (${share(row.saved_share)}) shorter if it were like its peers.`,
    );
  if (row.missing > 0) parts.push(`${row.missing} of ${row.ranks} ranks have no data.`);
  return parts.join(' ');
}
