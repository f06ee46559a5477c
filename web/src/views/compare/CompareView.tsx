import type { ReactNode } from 'react';
import {
  useCommand,
  useLive,
  useQuery,
  withParams,
  type Comparables,
  type Comparison,
} from '../../api/index.ts';
import { choice, text, useParam, useRoute } from '../../route/index.ts';
import { Empty, ended, Failure, Notice, Segmented, Waiting } from '../../ui/index.ts';
import { DiffFlame } from './DiffFlame.tsx';
import { Facts } from './Facts.tsx';
import { Figures } from './Figures.tsx';
import { Neighbors } from './Neighbors.tsx';
import { Picker } from './Picker.tsx';
import { chosenPair } from './pair.ts';
import { Changes } from './Changes.tsx';
import { TrendPanel } from './Trend.tsx';
import { trendLength } from './trend.ts';
import './compare.css';

const noText = text('');
const modeWord = choice('lost', 'time', 'flame', 'metadata', 'trend');

const modes = [
  ['lost', 'Lost time', 'Call paths with anomalies, by change in lost time'],
  ['time', 'All time', 'Functions by change in the time of all calls'],
  ['flame', 'Flame graph', 'Flame graph of A and B'],
  ['metadata', 'Metadata', 'Differences in hosts, settings, versions and environment'],
  ['trend', 'Trend', 'All runs by start time'],
] as const;

/** Changes between two runs, or over many. */
export default function CompareView() {
  const { run } = useLive();
  const { query } = useRoute();
  const list = useQuery<Comparables>('api/v1/comparable', { every: 30_000 });
  if (!list.data) {
    return list.problem ? (
      <Failure problem={list.problem} retry={list.refresh} />
    ) : (
      <Waiting label="loading the runs" lines={4} />
    );
  }
  const chosen = chosenPair(list.data, run, query.a, query.b);
  return (
    <div className="compare">
      {list.data.problems.map((p) => (
        <Notice key={p} level="watch">
          {ended(p)}
        </Notice>
      ))}
      {chosen.a === undefined ? (
        <Nothing run={run} list={list.data} />
      ) : (
        <Modes list={list.data} a={chosen.a} b={chosen.b} />
      )}
    </div>
  );
}

/** Shown if no run is chosen: the runs beside this one, and how to add others. */
function Nothing({ run, list }: { run: string; list: Comparables }) {
  const command = useCommand();
  const several = list.neighbors.length > 0;
  return (
    <>
      <h1 className="visually-hidden">Compare</h1>
      {several && <Neighbors list={list} />}
      <section className="panel" aria-label="How to add runs">
        <Empty
          title={several ? 'Or add a run with --compare.' : 'Add a second run with --compare.'}
        >
          <p>
            {run === '' ? 'The run' : run} is the only run of its store. Add a run from elsewhere,
            or the baseline of a good run:
          </p>
          <pre className="compare-commands">
            {`${command('view')} --compare OTHER_RUN
chimbuko baseline GOOD_RUN good.baseline
${command('view')} --compare good.baseline
${command('view')} --runs DIRECTORY_OF_RUNS`}
          </pre>
          <p>
            Runs in the same store are always available. With more than two runs, the page also
            shows trends.
          </p>
        </Empty>
      </section>
    </>
  );
}

/** The comparison modes; trends need more than two runs. */
function Modes({ list, a, b }: { list: Comparables; a: string; b: string }) {
  const [mode, setMode] = useParam('mode', modeWord);
  const [, select] = useParam('sel', noText);
  const several = trendLength(list.rows) > 2;
  const choices = (
    <Segmented
      small
      label="Comparison mode"
      choices={modes.filter(([m]) => m !== 'trend' || several || mode === 'trend')}
      chosen={mode}
      onChoose={(m) => {
        if (m !== mode) select('');
        setMode(m);
      }}
    />
  );
  if (mode === 'trend') return <TrendPanel choices={choices} />;
  return <Both key={`${a} ${b}`} list={list} a={a} b={b} mode={mode} choices={choices} />;
}

function Both(props: {
  list: Comparables;
  a: string;
  b: string;
  mode: 'lost' | 'time' | 'flame' | 'metadata';
  choices: ReactNode;
}) {
  const { list, a, b, mode, choices } = props;
  const { query } = useRoute();
  const result = useQuery<Comparison>(
    withParams('api/v1/compare', { a, b, program: query.program, limit: 2000 }),
    { every: 10_000, keep: true },
  );
  const c = result.data;
  return (
    <>
      <Picker list={list} a={a} b={b} />
      {!c && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!c && !result.problem && <Waiting label="comparing the runs" lines={8} />}
      {c && (
        <>
          <h1 className={`verdict ${c.verdict.level}`}>{ended(c.verdict.sentence)}</h1>
          {c.notices.map((n) => (
            <Notice key={n.topic + n.sentence} level={n.level}>
              {ended(n.sentence)}
            </Notice>
          ))}
          {result.problem && (
            <Notice level="watch">This view may be outdated: {result.problem.message}.</Notice>
          )}
          <Figures of={c} />
          {(mode === 'lost' || mode === 'time') && (
            <Changes key={mode} by={mode} of={c} choices={choices} />
          )}
          {mode === 'flame' && <DiffFlame of={c} choices={choices} />}
          {mode === 'metadata' && <Facts of={c} choices={choices} />}
        </>
      )}
    </>
  );
}
