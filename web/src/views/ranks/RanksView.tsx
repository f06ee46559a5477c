import { useMemo } from 'react';
import { useLive, useRunQuery, type RankRow, type RankTable } from '../../api/index.ts';
import { count, plural } from '../../format/index.ts';
import { choice, text, useParam, useRoute } from '../../route/index.ts';
import { Empty, ExportFigure, Failure, Notice, Segmented, Table, Waiting } from '../../ui/index.ts';
import { rankColumns } from './columns.tsx';
import { EfficiencyPanel } from './EfficiencyPanel.tsx';
import { RankDetail } from './RankDetail.tsx';
import { rowKey, span } from './ratio.ts';
import { RatioMap, RatioScale } from './RatioMap.tsx';
import './ranks.css';

const few = 64; // up to this many ranks are shown one by one at first

const kinds = [
  ['host', 'Hosts', 'All ranks of a host together'],
  ['rank', 'Ranks'],
  ['role', 'Roles', 'Ranks that make about as many calls of the same functions'],
  ['thread', 'Threads'],
  ['device', 'GPUs'],
] as const;

const anyOf = choice('', 'host', 'rank', 'role', 'thread', 'device');
const noText = text('');
const bySaved = text('-saved');

/** Ranks, hosts, roles, threads and GPUs compared with their peers, and efficiency. */
export default function RanksView() {
  const { query } = useRoute();
  const { overview } = useLive();
  const [chosen, setBy] = useParam('by', anyOf);
  const [selected, select] = useParam('sel', noText);
  const many = (overview?.figures.ranks ?? 0) > few;
  const by = chosen !== '' ? chosen : many && query.host === undefined ? 'host' : 'rank';
  const result = useRunQuery<RankTable>(
    'ranks',
    { by, program: query.program, host: query.host, rank: query.rank },
    { every: 2000, keep: true },
  );
  const table = result.data;
  const row = table?.rows.find((r) => rowKey(r) === selected);
  return (
    <div className={`ranks ${row ? 'with-detail' : ''}`}>
      <h1 className="visually-hidden">Ranks</h1>
      {!table && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!table && !result.problem && <Waiting label="loading the ranks" lines={10} />}
      {table && (
        <div className="ranks-main">
          {result.problem && (
            <Notice level="watch">This view may be outdated: {result.problem.message}.</Notice>
          )}
          <Missing table={table} />
          <Efficiencies table={table} />
          <section className="panel" aria-labelledby="ratio-title" data-figure>
            <header className="panel-head">
              <h2 id="ratio-title">Ratio to peers over time</h2>
              <span className="push" />
              <RatioScale />
              <Segmented small label="Rows" choices={kinds} chosen={by} onChoose={setBy} />
              <ExportFigure title="Ratio to peers over time" />
            </header>
            {table.rows.length === 0 || table.windows.length === 0 ? (
              <NotCompared by={by} live={overview?.live === true} />
            ) : (
              <RatioMap table={table} selected={selected} onSelect={select} />
            )}
          </section>
          {table.rows.length > 0 && (
            <Rows table={table} selected={selected} onSelect={(r) => select(rowKey(r))} />
          )}
        </div>
      )}
      {table && row && (
        <RankDetail
          table={table}
          row={row}
          programs={(overview?.programs.length ?? 0) > 1}
          onClose={() => select('')}
        />
      )}
    </div>
  );
}

/** Why there is nothing to show. */
function NotCompared({ by, live }: { by: string; live: boolean }) {
  if (by === 'thread' || by === 'device')
    return <Empty title={`No ${by === 'device' ? 'GPUs' : 'threads'} to compare.`} />;
  return (
    <Empty title="Ranks are not compared yet.">
      <p>
        {live
          ? 'The comparison begins a few seconds after the first data.'
          : 'This run was stored by a version that does not compare ranks; analyze its traces again.'}
      </p>
    </Empty>
  );
}

/** Ranks without data. */
function Missing({ table }: { table: RankTable }) {
  const total = table.missing.reduce((n, m) => n + m.count, 0);
  if (total === 0 || table.windows.length === 0) return null;
  const few = table.missing.slice(0, 4);
  return (
    <Notice level="watch">
      No data of {plural(total, 'rank')}:{' '}
      {few.map((m) => (m.host === '' ? m.ranks : `${m.ranks} (${m.host})`)).join('; ')}
      {table.missing.length > few.length && '; …'}. They are shown as missing.
    </Notice>
  );
}

/** The efficiency of each program. */
function Efficiencies({ table }: { table: RankTable }) {
  const programs = useMemo(
    () => [...new Set(table.efficiency.map((e) => e.program))],
    [table.efficiency],
  );
  return programs.map((p) => (
    <EfficiencyPanel
      key={p}
      program={programs.length > 1 ? p : undefined}
      list={table.efficiency.filter((e) => e.program === p)}
    />
  ));
}

function Rows(props: { table: RankTable; selected: string; onSelect: (row: RankRow) => void }) {
  const { table } = props;
  const [sort, setSort] = useParam('sort', bySaved);
  const [filter, setFilter] = useParam('q', noText);
  const most = Math.max(...table.rows.map((r) => r.useful_us + r.wait_us), 1);
  const { from, to } = span(table);
  const columns = useMemo(() => rankColumns(table.by, most, to - from), [table.by, most, from, to]);
  return (
    <section className="panel ranks-table" aria-label="Table">
      <Table<RankRow>
        name={`ranks-${table.by}`}
        label="Ranks compared with their peers"
        main
        columns={columns}
        rows={table.rows}
        rowKey={rowKey}
        sort={sort}
        onSort={setSort}
        filter={filter}
        onFilter={setFilter}
        selected={props.selected}
        onSelect={props.onSelect}
        rowClass={(r) => (r.missing === r.ranks ? 'missing' : '')}
        tools={
          <ul className="time-legend">
            <li>
              <span className="swatch useful" /> useful
            </li>
            <li>
              <span className="swatch waiting-time" /> waiting
            </li>
            <li>
              <span className="swatch lost" /> lost to findings
            </li>
          </ul>
        }
        footer={
          table.total > table.rows.length && (
            <span>
              {count(table.total)} in all: neighbors share a row, which has the worst ratio of them
            </span>
          )
        }
      />
    </section>
  );
}
