import type { ReactNode } from 'react';
import { useLive, useRunQuery, type FunctionTable } from '../../api/index.ts';
import { choice, text, useParam, useRoute } from '../../route/index.ts';
import { Failure, Notice, Segmented, Waiting } from '../../ui/index.ts';
import { Counters } from './Counters.tsx';
import { Detail } from './Detail.tsx';
import { FlamePanel } from './FlamePanel.tsx';
import { FunctionList } from './FunctionList.tsx';
import './functions.css';

type Mode = 'table' | 'flame' | 'lost' | 'counters';

const modes: readonly (readonly [Mode, string, string])[] = [
  ['table', 'Table', 'All functions'],
  ['flame', 'Flame: time', 'Time of all calls'],
  ['lost', 'Flame: lost', 'Time lost to anomalies'],
  ['counters', 'Counters', 'TAU counters'],
];

const modeWord = choice('table', 'flame', 'lost', 'counters');
const noText = text('');
const mostRows = 5000;

/** Time by function and its distribution. */
export default function FunctionsView() {
  const { query } = useRoute();
  const [mode, setMode] = useParam('mode', modeWord);
  const [selected, select] = useParam('sel', noText);
  const table = useRunQuery<FunctionTable>(
    'functions',
    { limit: mostRows, program: query.program },
    { every: 5000, keep: true },
  );
  const choices = <Segmented small label="View" choices={modes} chosen={mode} onChoose={setMode} />;
  const withDetail = selected !== '' && mode !== 'counters';
  return (
    <div className={`functions ${withDetail ? 'with-detail' : ''}`}>
      <h1 className="visually-hidden">Functions</h1>
      <section className="panel filled" aria-label={modes.find(([m]) => m === mode)?.[2]}>
        {mode === 'counters' && <Counters choices={choices} />}
        {(mode === 'flame' || mode === 'lost') && (
          <FlamePanel
            key={mode}
            metric={mode === 'lost' ? 'lost' : 'time'}
            choices={choices}
            rows={table.data?.rows ?? []}
            onSelect={select}
          />
        )}
        {mode === 'table' && (
          <Listed table={table} choices={choices} selected={selected} onSelect={select} />
        )}
      </section>
      {withDetail && <Detail key={selected} id={selected} onClose={() => select('')} />}
    </div>
  );
}

function Listed(props: {
  table: ReturnType<typeof useRunQuery<FunctionTable>>;
  choices: ReactNode;
  selected: string;
  onSelect: (id: string) => void;
}) {
  const { table } = props;
  const { overview } = useLive();
  if (!table.data) {
    return (
      <>
        <div className="tools">{props.choices}</div>
        {table.problem ? (
          <Failure problem={table.problem} retry={table.refresh} />
        ) : (
          <Waiting label="loading the functions" lines={10} />
        )}
      </>
    );
  }
  return (
    <>
      {table.problem && (
        <Notice level="watch">This list may be outdated: {table.problem.message}.</Notice>
      )}
      <FunctionList
        table={table.data}
        live={overview?.live === true}
        programs={(overview?.programs.length ?? 0) > 1}
        countsOnly={overview?.packets !== undefined}
        choices={props.choices}
        selected={props.selected}
        onSelect={props.onSelect}
      />
    </>
  );
}
