import { useMemo } from 'react';
import {
  useLive,
  useRunQuery,
  type GPUTime,
  type RankSteps,
  type StreamTime,
} from '../../api/index.ts';
import { plural } from '../../format/index.ts';
import { choice, text, useHref, useParam } from '../../route/index.ts';
import { ExportFigure, Failure, Segmented, Table, Waiting } from '../../ui/index.ts';
import { stepColumns, streamColumns } from './columns.tsx';
import { StackedBars } from './StackedBars.tsx';

const noText = text('');
const anyLength = choice('time', 'share');
const lengths = [
  ['time', 'Time', 'Bars are as long as their time'],
  ['share', 'Share', 'All bars are equally long'],
] as const;

/** The training steps and the streams of a rank. */
export function Steps(props: { of: GPUTime; name: string; onClose: () => void }) {
  const { of } = props;
  const result = useRunQuery<RankSteps>('breakdown/steps', { program: of.program, rank: of.rank });
  const data = result.data;
  return (
    <aside className="panel gpus-steps" aria-label={props.name}>
      <header className="panel-head">
        <h2>{props.name}</h2>
        <span className="push" />
        <button type="button" className="button quiet" aria-label="Close" onClick={props.onClose}>
          ×
        </button>
      </header>
      {!data && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!data && !result.problem && <Waiting label="loading the steps" lines={6} />}
      {data && <Shown data={data} name={props.name} />}
    </aside>
  );
}

function Shown({ data, name }: { data: RankSteps; name: string }) {
  const { overview } = useLive();
  const [length, setLength] = useParam('steplength', anyLength);
  const [sort, setSort] = useParam('stepsort', noText);
  const href = useHref();
  const run = overview?.length_s ?? 0;
  const columns = useMemo(() => stepColumns(run, href), [run, href]);
  const { steps } = data;
  return (
    <>
      {steps.length === 0 ? (
        <p className="gpu-words muted">
          The trace has no training steps: the program does not call step() of PyTorch’s profiler.
        </p>
      ) : (
        <div data-figure>
          <div className="gpu-steps-head">
            <h3>Training steps</h3>
            <span className="push" />
            <Segmented
              small
              label="Length of bars of steps"
              choices={lengths}
              chosen={length}
              onChoose={setLength}
            />
            <ExportFigure title={`Time of GPUs in training steps of ${name}`} />
          </div>
          <StackedBars
            label={`Time of GPUs in ${plural(steps.length, 'training step')}; the table below has the numbers`}
            rows={steps}
            absolute={length === 'time'}
            tick={(t) => String(t.step ?? '')}
            name={(t) => `step ${t.step ?? ''}`}
          />
          <Table<GPUTime>
            name="gpu-steps"
            label="Time of GPUs by training step"
            columns={columns}
            rows={steps}
            rowKey={(t) => `${t.step ?? ''} ${t.start_us}`}
            sort={sort}
            onSort={setSort}
            footer={data.more > 0 && <span>and {plural(data.more, 'later step')}</span>}
          />
        </div>
      )}
      {data.rank.streams && (
        <>
          <div className="gpu-steps-head">
            <h3>Streams</h3>
          </div>
          <Table<StreamTime>
            name="gpu-streams"
            label="Streams of the rank"
            columns={streamColumns}
            rows={data.rank.streams}
            rowKey={(s) => String(s.tid)}
          />
        </>
      )}
    </>
  );
}
