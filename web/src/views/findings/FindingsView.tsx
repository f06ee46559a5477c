import { useCallback, useMemo } from 'react';
import { useLive, useRunQuery, type Finding, type FindingList } from '../../api/index.ts';
import { count, plural } from '../../format/index.ts';
import { eventPath, flag, go, list, text, useParam, useRoute, useSpan } from '../../route/index.ts';
import { Empty, Failure, Kind, Notice, Table, Term, Waiting } from '../../ui/index.ts';
import { findingColumns } from './columns.tsx';
import { IgnoreFile } from './IgnoreFile.tsx';
import { FindingDetail } from './FindingDetail.tsx';
import {
  fold,
  isMinor,
  isMuted,
  isWithdrawn,
  kindCounts,
  narrow,
  type Narrowing,
} from './select.ts';
import './findings.css';

const byNumber = text('finding');
const noText = text('');

const rowKey = (i: Finding) => i.key;
const rowClass = (i: Finding) =>
  `${isMuted(i) ? 'is-muted' : ''} ${i.role === 'victim' ? 'is-victim' : ''}`;

/** Opens the evidence of a finding's example anomaly. */
function openExample(i: Finding): void {
  if (i.example !== undefined) go({ event: eventPath(i.program, i.example) });
}

/** The findings in order of lost time. */
export default function FindingsView() {
  const { overview } = useLive();
  const { query } = useRoute();
  const { t0, t1 } = useSpan();
  const [sort, setSort] = useParam('sort', byNumber);
  const [filter, setFilter] = useParam('q', noText);
  const [kinds, setKinds] = useParam('kind', list);
  const [muted, setMuted] = useParam('muted', flag);
  const [minor, setMinor] = useParam('minor', flag);
  const [withdrawn, setWithdrawn] = useParam('withdrawn', flag);
  const [selected, select] = useParam('sel', noText);
  const result = useRunQuery<FindingList>('findings', {}, { every: 3000 });
  const all = useMemo(() => result.data?.rows ?? [], [result.data]);
  const { host = '', rank = '', program = '' } = query;
  const listed = useMemo(
    () => narrow(all, { kinds, host, rank, program, t0, t1, muted, minor, withdrawn }),
    [all, kinds, host, rank, program, t0, t1, muted, minor, withdrawn],
  );
  const { top, victims } = useMemo(() => fold(listed), [listed]);
  const ranks = overview?.figures.ranks ?? 0;
  const columns = useMemo(() => findingColumns(ranks), [ranks]);
  const children = useCallback((i: Finding) => victims.get(i.finding), [victims]);
  const chosen = all.find((i) => i.key === selected);
  // Each button counts the findings that it shows or hides among the findings that the other filters select.
  const matching = useMemo(
    () => (change: Partial<Narrowing>) =>
      fold(narrow(all, { kinds, host, rank, program, t0, t1, muted, minor, withdrawn, ...change }))
        .top,
    [all, kinds, host, rank, program, t0, t1, muted, minor, withdrawn],
  );
  const hidden = matching({ muted: true }).filter(isMuted).length;
  const small = matching({ minor: true, withdrawn: false }).filter(isMinor).length;
  const old = matching({ withdrawn: true }).length;
  if (!result.data) {
    if (result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
    return <Waiting label="loading the findings" lines={8} />;
  }
  const narrowed =
    kinds.length > 0 ||
    host !== '' ||
    rank !== '' ||
    program !== '' ||
    t0 !== undefined ||
    t1 !== undefined;
  return (
    <div className={`findings ${chosen ? 'with-detail' : ''}`}>
      <h1 className="visually-hidden">Findings</h1>
      {result.problem && (
        <Notice level="watch">This list may be outdated: {result.problem.message}.</Notice>
      )}
      <section className="panel findings-list" aria-label="All findings">
        <Table<Finding>
          name="findings"
          label="Findings, the costliest first"
          main
          columns={columns}
          rows={top}
          rowKey={rowKey}
          rowClass={rowClass}
          sort={sort}
          onSort={setSort}
          filter={filter}
          onFilter={setFilter}
          selected={selected}
          onSelect={(i) => select(i.key)}
          onOpen={openExample}
          children={children}
          tools={
            <>
              <div className="kinds" role="group" aria-label="Filter by kind">
                {kindCounts(matching({ kinds: [] })).map(([kind, n]) => (
                  <button
                    key={kind}
                    type="button"
                    className="button"
                    aria-pressed={kinds.includes(kind)}
                    onClick={() =>
                      setKinds(
                        kinds.includes(kind) ? kinds.filter((k) => k !== kind) : [...kinds, kind],
                      )
                    }
                  >
                    <Kind kind={kind} /> {n}
                  </button>
                ))}
              </div>
              {(hidden > 0 || muted) && (
                <button
                  type="button"
                  className="button"
                  aria-pressed={muted}
                  title="Findings muted or marked as expected"
                  onClick={() => setMuted(!muted)}
                >
                  {muted ? 'Hide' : 'Show'} {count(hidden)} muted
                </button>
              )}
              {(small > 0 || minor) && (
                <button
                  type="button"
                  className="button"
                  aria-pressed={minor}
                  title="Findings that cost less than 0.01 % of the time of all ranks, and notes about normal behavior"
                  onClick={() => setMinor(!minor)}
                >
                  {minor ? 'Hide' : 'Show'} {count(small)} minor or normal
                </button>
              )}
              {(old > 0 || withdrawn) && (
                <button
                  type="button"
                  className="button"
                  aria-pressed={withdrawn}
                  title="Flags that the review at the end found usual"
                  onClick={() => setWithdrawn(!withdrawn)}
                >
                  {withdrawn ? 'Hide' : 'Show'} {count(old)} withdrawn
                </button>
              )}
              {(old > 0 || withdrawn) && <Term name="withdrawn" mark />}
            </>
          }
          empty={
            <NoFindings
              none={all.every((i) => isMinor(i) || isWithdrawn(i))}
              narrowed={narrowed || withdrawn}
              hidden={hidden}
            />
          }
          footer={
            <>
              {listed.length > top.length && (
                <span>
                  {plural(listed.length - top.length, 'finding')} of waits grouped under their cause
                </span>
              )}
              {result.data.total > all.length && (
                <span>
                  showing {count(all.length)} of {count(result.data.total)}, the worst
                </span>
              )}
              <Term name={result.data.stored ? 'final' : 'provisional'} />
              <IgnoreFile hidden={hidden} />
            </>
          }
        />
      </section>
      {chosen && (
        <FindingDetail
          key={chosen.key}
          finding={chosen}
          all={all}
          writable={result.data.writable}
          listed={listed.includes(chosen)}
          onChanged={result.refresh}
        />
      )}
    </div>
  );
}

/** Explains an empty list. */
function NoFindings(props: { none: boolean; narrowed: boolean; hidden: number }) {
  const { overview } = useLive();
  if (props.none) {
    const calls = overview?.figures.calls;
    if (!calls && !overview?.figures.kept) return <Empty title="No calls judged yet." />;
    return (
      <Empty title={`0 findings${calls === undefined ? '' : ` in ${count(calls)} calls`}`}>
        <p>{overview.live ? 'No problems so far.' : 'No problems found.'}</p>
      </Empty>
    );
  }
  if (props.narrowed) {
    return (
      <Empty
        title="No finding matches the filters."
        action={
          <button
            type="button"
            className="button"
            onClick={() =>
              go({
                query: { kind: '', host: '', rank: '', program: '', t0: '', t1: '', withdrawn: '' },
              })
            }
          >
            Show all
          </button>
        }
      />
    );
  }
  return <Empty title={`All ${plural(props.hidden, 'finding')} are muted or expected.`} />;
}
