import { useMemo } from 'react';
import { useLive, useRunQuery, type Breakdown, type GPUTime } from '../../api/index.ts';
import { plural } from '../../format/index.ts';
import { choice, text, useParam, useRoute } from '../../route/index.ts';
import { Empty, ExportFigure, Failure, Segmented, Table, Waiting } from '../../ui/index.ts';
import { Collectives } from './Collectives.tsx';
import { rankColumns } from './columns.tsx';
import { Notes } from './Notes.tsx';
import { ordered, orders, rankKey } from './parts.ts';
import { PartLegend, StackedBars } from './StackedBars.tsx';
import { Steps } from './Steps.tsx';
import './gpus.css';

const noText = text('');
const anyOrder = choice('rank', 'compute', 'communication', 'idle');
const anyLength = choice('share', 'time');

/** How the lengths of bars are chosen. */
const lengths = [
  ['share', 'Share', 'All bars are equally long'],
  ['time', 'Time', 'Bars are as long as their time'],
] as const;

/** How the GPUs of each rank spent their time, and its collective operations. */
export default function GpusView() {
  const { query } = useRoute();
  const { overview } = useLive();
  const any = overview && (overview.gpus || overview.collectives);
  const result = useRunQuery<Breakdown>(
    any ? 'breakdown' : undefined,
    { program: query.program, host: query.host, rank: query.rank },
    { keep: true, every: 3000 },
  );
  const data = result.data;
  return (
    <>
      <h1 className="visually-hidden">
        {any && !overview.gpus ? 'Collective operations' : 'GPUs'}
      </h1>
      {any === false && (
        <Empty title="This run has no times of GPUs and no collective operations.">
          <p>
            Its traces do not have them, it is live, or it was imported. Analyze the traces with
            chimbuko analyze to get them.
          </p>
        </Empty>
      )}
      {!data && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!data && !result.problem && any !== false && (
        <Waiting label="loading the times of GPUs" lines={10} />
      )}
      {data && (overview?.gpus === true ? <Shown data={data} /> : <OnlyCollectives data={data} />)}
    </>
  );
}

/** The collective operations of a run without GPUs. */
function OnlyCollectives({ data }: { data: Breakdown }) {
  const { rows } = data.collectives;
  const programs = useMemo(() => new Set(rows.map((c) => c.program)).size > 1, [rows]);
  return (
    <div className="gpus">
      <Collectives data={data.collectives} programs={programs} />
    </div>
  );
}

function Shown({ data }: { data: Breakdown }) {
  const [selected, select] = useParam('sel', noText);
  const [order, setOrder] = useParam('order', anyOrder);
  const [length, setLength] = useParam('length', anyLength);
  const { rows, more } = data.times;
  const programs = useMemo(() => new Set(rows.map((t) => t.program)).size > 1, [rows]);
  const shown = useMemo(() => ordered(rows, order), [rows, order]);
  const chosen = rows.find((t) => rankKey(t) === selected);
  const name = (t: GPUTime) =>
    `${programs ? `program ${t.program}, ` : ''}rank ${t.rank}${t.host === undefined ? '' : ` (${t.host})`}`;
  return (
    <div className={chosen ? 'gpus with-detail' : 'gpus'}>
      <div className="gpus-main">
        <section className="panel" aria-labelledby="gpus-title" data-figure>
          <header className="panel-head">
            <h2 id="gpus-title">Time of GPUs by rank</h2>
            <span className="push" />
            <Segmented
              small
              label="Order of ranks"
              choices={orders}
              chosen={order}
              onChoose={setOrder}
            />
            <Segmented
              small
              label="Length of bars"
              choices={lengths}
              chosen={length}
              onChoose={setLength}
            />
            <ExportFigure title="Time of GPUs by rank" />
          </header>
          <PartLegend />
          <StackedBars
            label={`Time of GPUs of ${plural(rows.length, 'rank')}; the table below has the numbers`}
            rows={shown}
            absolute={length === 'time'}
            tick={(t) => String(t.rank)}
            name={name}
            selected={(t) => rankKey(t) === selected}
            onSelect={(t) => select(rankKey(t))}
          />
          <Notes list={data.times.notes} />
        </section>
        <Ranks
          rows={rows}
          more={more}
          programs={programs}
          selected={selected}
          onSelect={(t) => select(rankKey(t))}
        />
      </div>
      {chosen && (
        <Steps key={selected} of={chosen} name={name(chosen)} onClose={() => select('')} />
      )}
      <Collectives data={data.collectives} programs={programs} />
    </div>
  );
}

function Ranks(props: {
  rows: readonly GPUTime[];
  more: number;
  programs: boolean;
  selected: string;
  onSelect: (t: GPUTime) => void;
}) {
  const [sort, setSort] = useParam('sort', noText);
  const [filter, setFilter] = useParam('q', noText);
  const hosts = props.rows.some((t) => t.host !== undefined);
  const columns = useMemo(() => rankColumns(props.programs, hosts), [props.programs, hosts]);
  return (
    <section className="panel gpus-table" aria-label="Ranks">
      <Table<GPUTime>
        name="gpus"
        label="Time of GPUs by rank"
        main
        columns={columns}
        rows={props.rows}
        rowKey={rankKey}
        sort={sort}
        onSort={setSort}
        filter={filter}
        onFilter={setFilter}
        selected={props.selected}
        onSelect={props.onSelect}
        footer={
          props.more > 0 && (
            <span>and {plural(props.more, 'more rank')}: select ranks to see them</span>
          )
        }
      />
    </section>
  );
}
