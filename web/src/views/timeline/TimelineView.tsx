import { useMemo } from 'react';
import { useLive, useRunQuery, type Timeline, type TimelineRow } from '../../api/index.ts';
import { count, percent, plural } from '../../format/index.ts';
import { go, text, useParam, useRoute, useSpan } from '../../route/index.ts';
import {
  Empty,
  ExportFigure,
  Failure,
  Notice,
  Table,
  Waiting,
  type Column,
} from '../../ui/index.ts';
import { colorToken, rowName, rowRanks, shares, words } from './activity.ts';
import { ActivityCanvas, canvasHeight, type Stored } from './ActivityCanvas.tsx';
import { Counters } from './Counters.tsx';
import { Messages } from './Messages.tsx';
import './timeline.css';

const mostStored = 1000;
const noText = text('');

/** What all ranks did over the whole run, and their messages. */
export default function TimelineView() {
  const { query } = useRoute();
  const { overview } = useLive();
  const { t0, t1 } = useSpan();
  const filter = { program: query.program, host: query.host, rank: query.rank };
  const result = useRunQuery<Timeline>(
    'timeline',
    { ...filter, rows: canvasHeight },
    { every: 2000, keep: true },
  );
  const timeline = result.data;
  const stored = useRunQuery<{ rows: Stored[] }>(
    timeline?.recorded === true ? 'events' : undefined,
    { ...filter, since: t0, until: t1, order: 'lost', limit: mostStored },
    { keep: true },
  );
  const span = useMemo(
    () =>
      timeline && (t0 !== undefined || t1 !== undefined)
        ? { t0: t0 ?? timeline.from_s, t1: t1 ?? timeline.to_s }
        : undefined,
    [timeline, t0, t1],
  );
  const programs = (overview?.programs.length ?? 0) > 1;
  return (
    <div className="timeline-view">
      <h1 className="visually-hidden">Timeline</h1>
      {!timeline && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!timeline && !result.problem && <Waiting label="loading the timeline" lines={10} />}
      {timeline && result.problem && (
        <Notice level="watch">This view may be outdated: {result.problem.message}.</Notice>
      )}
      {timeline && !timeline.recorded && <NotRecorded live={overview?.live === true} />}
      {timeline?.recorded === true && (
        <>
          <section className="panel" aria-labelledby="timeline-title" data-figure>
            <header className="panel-head">
              <h2 id="timeline-title">What {plural(timeline.ranks, 'rank')} did over time</h2>
              <span className="push" />
              <Legend classes={timeline.classes} />
              {(span !== undefined || query.rank !== undefined) && (
                <button
                  type="button"
                  className="button"
                  onClick={() => go({ query: { t0: '', t1: '', rank: '' } }, true)}
                >
                  Show everything
                </button>
              )}
              <ExportFigure title={`What ${plural(timeline.ranks, 'rank')} did over time`} />
            </header>
            {timeline.rows.length === 0 || timeline.columns === 0 ? (
              <Empty title="No ranks are within what is chosen." />
            ) : (
              <ActivityCanvas
                key={query.rank ?? ''}
                timeline={timeline}
                findings={overview?.findings ?? []}
                stored={stored.data?.rows ?? []}
                programs={programs}
                span={span}
              />
            )}
            <p className="activity-note" data-no-export>
              Each cell has the color of the activity with the most time of all threads; the less
              dominant, the fainter. Wheel: zoom the time, with Shift the ranks. Drag: zoom to a
              part. Click: what is stored there.
            </p>
          </section>
          <Counters filter={filter} programs={programs} span={span} />
          {timeline.rows.length > 0 && <Rows timeline={timeline} programs={programs} />}
          {timeline.messages.map((m) => (
            <Messages
              key={m.program}
              matrix={m}
              title={`Messages between ranks${programs ? ` of program ${m.program}` : ''}, whole run`}
            />
          ))}
        </>
      )}
    </div>
  );
}

function NotRecorded({ live }: { live: boolean }) {
  return (
    <Empty title="Not recorded.">
      <p>
        {live
          ? 'The timeline begins a few seconds after the first data.'
          : 'This run was stored by a version that does not record activities; analyze its traces again.'}
      </p>
    </Empty>
  );
}

function Legend({ classes }: { classes: readonly string[] }) {
  return (
    <ul className="activity-legend">
      {classes
        .filter((c) => colorToken[c] !== undefined)
        .map((c) => (
          <li key={c}>
            <span className="swatch" style={{ background: `var(--${colorToken[c] ?? ''})` }} />{' '}
            {words[c]}
          </li>
        ))}
      <li>
        <span className="swatch outlined" /> finding
      </li>
      <li>
        <span className="swatch" style={{ background: 'var(--kind-slow)' }} /> stored call
      </li>
    </ul>
  );
}

function Rows({ timeline, programs }: { timeline: Timeline; programs: boolean }) {
  const [sort, setSort] = useParam('sort', noText);
  const [filter, setFilter] = useParam('q', noText);
  const columns = useMemo(() => {
    const all: Column<TimelineRow>[] = [
      { id: 'rank', header: 'Rank', value: (r) => r.first_rank, cell: (r) => rowName(r, programs) },
      { id: 'host', header: 'Host', value: (r) => r.host ?? '' },
    ];
    timeline.classes.forEach((c, i) => {
      if (colorToken[c] === undefined) return;
      all.push({
        id: c,
        header: `${words[c] ?? c}, %`,
        align: 'right',
        value: (r) => Math.round(10 * (shares(r)[i] ?? 0)) / 10,
        cell: (r) => percent(Math.round(10 * (shares(r)[i] ?? 0)) / 10),
      });
    });
    return all;
  }, [timeline.classes, programs]);
  return (
    <section className="panel activity-table" aria-label="Table">
      <Table<TimelineRow>
        name="timeline"
        label="Shares of activities in the time of ranks"
        main
        columns={columns}
        rows={timeline.rows}
        rowKey={(r) => `${r.program}:${r.first_rank}`}
        sort={sort}
        onSort={setSort}
        filter={filter}
        onFilter={setFilter}
        onOpen={(r) =>
          go({
            view: 'findings',
            query: { rank: rowRanks([r]), ...(programs ? { program: r.program } : {}) },
          })
        }
        footer={
          timeline.ranks > timeline.rows.length && (
            <span>{count(timeline.ranks)} ranks in all: neighbors share a row</span>
          )
        }
      />
    </section>
  );
}
