import type { ReactNode } from 'react';
import {
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
import { Picker } from './Picker.tsx';
import { chosenPair } from './pair.ts';
import { Changes } from './Changes.tsx';
import { TrendPanel } from './Trend.tsx';
import { trendLength } from './trend.ts';
import './compare.css';

const noText = text('');
const modeWord = choice('lost', 'time', 'flame', 'metadata', 'trend');

const modes = [
  ['lost', 'Lost time', 'Call paths with anomalies, by the change of what they lost'],
  ['time', 'All time', 'Functions by the change of the time of all their calls'],
  ['flame', 'Flame graph', 'Where the time went in A and B'],
  ['metadata', 'Metadata', 'What else differs: hosts, settings, versions, environment'],
  ['trend', 'Over all runs', 'Since when is it so? All runs in the order of their start'],
] as const;

/** What changed since the good run? */
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
        <Nothing run={run} />
      ) : (
        <Modes list={list.data} a={chosen.a} b={chosen.b} />
      )}
    </div>
  );
}

/** There is only one run. */
function Nothing({ run }: { run: string }) {
  return (
    <section className="panel" aria-label="Nothing to compare">
      <h1 className="visually-hidden">Compare</h1>
      <Empty title="Give a second run with --compare.">
        <p>
          {run === '' ? 'The run' : run} is the only one that this page was given. Start it with
          another run, or with what was kept of a good one:
        </p>
        <pre className="compare-commands">
          {`chimbuko view RUN --compare OTHER_RUN
chimbuko baseline GOOD_RUN good.baseline
chimbuko view RUN --compare good.baseline`}
        </pre>
        <p>
          Runs of the same store can be compared at once. With more than two runs the page tells
          since which of them something is different.
        </p>
      </Empty>
    </section>
  );
}

/** The ways to compare; over all runs only where there are more than two. */
function Modes({ list, a, b }: { list: Comparables; a: string; b: string }) {
  const [mode, setMode] = useParam('mode', modeWord);
  const [, select] = useParam('sel', noText);
  const several = trendLength(list.rows) > 2;
  const choices = (
    <Segmented
      small
      label="What is compared"
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
  const asked = useQuery<Comparison>(
    withParams('api/v1/compare', { a, b, program: query.program, limit: 2000 }),
    { every: 10_000, keep: true },
  );
  const c = asked.data;
  return (
    <>
      <Picker list={list} a={a} b={b} />
      {!c && asked.problem && <Failure problem={asked.problem} retry={asked.refresh} />}
      {!c && !asked.problem && <Waiting label="comparing the runs" lines={8} />}
      {c && (
        <>
          <h1 className={`verdict ${c.verdict.level}`}>{ended(c.verdict.sentence)}</h1>
          {c.notices.map((n) => (
            <Notice key={n.topic + n.sentence} level={n.level}>
              {ended(n.sentence)}
            </Notice>
          ))}
          {asked.problem && (
            <Notice level="watch">What is shown may be old: {asked.problem.message}.</Notice>
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
