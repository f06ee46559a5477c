import { useCallback, useMemo } from 'react';
import { useLive, useRunQuery, type Issue, type IssueList } from '../../api/index.ts';
import { count, plural } from '../../format/index.ts';
import { eventPath, flag, go, list, text, useParam, useRoute, useSpan } from '../../route/index.ts';
import { Empty, Failure, Kind, Notice, Table, Waiting } from '../../ui/index.ts';
import { issueColumns } from './columns.tsx';
import { IgnoreFile } from './IgnoreFile.tsx';
import { IssueDetail } from './IssueDetail.tsx';
import { fold, isMuted, kindCounts, narrow } from './select.ts';
import './issues.css';

const byNumber = text('issue');
const noText = text('');

const rowKey = (i: Issue) => i.key;
const rowClass = (i: Issue) =>
  `${isMuted(i) ? 'is-muted' : ''} ${i.role === 'victim' ? 'is-victim' : ''}`;

/** Opens the evidence of the anomaly that stands for an issue. */
function openExample(i: Issue): void {
  if (i.example !== undefined) go({ event: eventPath(i.program, i.example) });
}

/** What should I look at, in what order? */
export default function IssuesView() {
  const { overview } = useLive();
  const { query } = useRoute();
  const { t0, t1 } = useSpan();
  const [sort, setSort] = useParam('sort', byNumber);
  const [filter, setFilter] = useParam('q', noText);
  const [kinds, setKinds] = useParam('kind', list);
  const [muted, setMuted] = useParam('muted', flag);
  const [selected, select] = useParam('sel', noText);
  const asked = useRunQuery<IssueList>('issues', {}, { every: 3000 });
  const all = useMemo(() => asked.data?.rows ?? [], [asked.data]);
  const length = overview?.length_s ?? 0;
  const { host = '', rank = '', program = '' } = query;
  const listed = useMemo(
    () => narrow(all, { kinds, host, rank, program, t0, t1, muted }, length),
    [all, kinds, host, rank, program, t0, t1, muted, length],
  );
  const { top, victims } = useMemo(() => fold(listed), [listed]);
  const ranks = overview?.figures.ranks ?? 0;
  const columns = useMemo(() => issueColumns(ranks), [ranks]);
  const children = useCallback((i: Issue) => victims.get(i.issue), [victims]);
  const chosen = all.find((i) => i.key === selected);
  const hidden = all.filter(isMuted).length;
  if (!asked.data) {
    if (asked.problem) return <Failure problem={asked.problem} retry={asked.refresh} />;
    return <Waiting label="loading the issues" lines={8} />;
  }
  const narrowed =
    kinds.length > 0 ||
    host !== '' ||
    rank !== '' ||
    program !== '' ||
    t0 !== undefined ||
    t1 !== undefined;
  return (
    <div className={`issues ${chosen ? 'with-detail' : ''}`}>
      <h1 className="visually-hidden">Issues</h1>
      {asked.problem && (
        <Notice level="watch">What is listed may be old: {asked.problem.message}.</Notice>
      )}
      <section className="panel issues-list" aria-label="All issues">
        <Table<Issue>
          name="issues"
          label="Issues, the worst first"
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
              <div className="kinds" role="group" aria-label="Only these kinds">
                {kindCounts(all).map(([kind, n]) => (
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
                  title="Issues that somebody muted or marked as expected"
                  onClick={() => setMuted(!muted)}
                >
                  {muted ? 'Hide' : 'Show'} {count(hidden)} muted
                </button>
              )}
            </>
          }
          empty={<NoIssues none={all.length === 0} narrowed={narrowed} hidden={hidden} />}
          footer={
            <>
              {listed.length > top.length && (
                <span>
                  {plural(listed.length - top.length, 'issue')} of waits folded under what caused
                  them
                </span>
              )}
              {asked.data.total > all.length && (
                <span>
                  showing {count(all.length)} of {count(asked.data.total)}, the worst
                </span>
              )}
              <span>
                {asked.data.stored ? 'as found at the end of the run' : 'as of now, provisional'}
              </span>
              <IgnoreFile hidden={hidden} />
            </>
          }
        />
      </section>
      {chosen && (
        <IssueDetail
          key={chosen.key}
          issue={chosen}
          all={all}
          writable={asked.data.writable}
          listed={listed.includes(chosen)}
          onChanged={asked.refresh}
        />
      )}
    </div>
  );
}

/** Says why no issue is listed. */
function NoIssues(props: { none: boolean; narrowed: boolean; hidden: number }) {
  const { overview } = useLive();
  if (props.none) {
    const calls = overview?.figures.calls;
    if (!calls && !overview?.figures.kept) return <Empty title="No call has been judged yet." />;
    return (
      <Empty title={`0 issues${calls === undefined ? '' : ` in ${count(calls)} calls`}`}>
        <p>{overview.live ? 'Nothing is wrong so far.' : 'Nothing was found to be wrong.'}</p>
      </Empty>
    );
  }
  if (props.narrowed) {
    return (
      <Empty
        title="No issue is within what is chosen."
        action={
          <button
            type="button"
            className="button"
            onClick={() =>
              go({ query: { kind: '', host: '', rank: '', program: '', t0: '', t1: '' } })
            }
          >
            Show all
          </button>
        }
      />
    );
  }
  return <Empty title={`All ${plural(props.hidden, 'issue')} are muted or expected.`} />;
}
