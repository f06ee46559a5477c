import { useLive, useRunQuery, type Status } from '../../api/index.ts';
import { plural } from '../../format/index.ts';
import { choice, useParam } from '../../route/index.ts';
import { Empty, ended, Failure, Notice, Waiting } from '../../ui/index.ts';
import { Analyzers } from './Analyzers.tsx';
import { Costs } from './Costs.tsx';
import { PipelineTiles } from './PipelineTiles.tsx';
import { Ranks } from './Ranks.tsx';
import { Services } from './Services.tsx';
import { Tallies } from './Tallies.tsx';
import './pipeline.css';

const tabs = choice('analyzers', 'ranks', 'services', 'tallies', 'cost');

const tabNames = {
  analyzers: 'Analyzers',
  ranks: 'Ranks',
  services: 'Services',
  tallies: 'Data quality',
  cost: 'Cost by host',
} as const;

/** Health and overhead of the analysis. */
export default function PipelineView() {
  const { status: ticked, overview } = useLive();
  const [tab, setTab] = useParam('tab', tabs);
  // Ticks omit ranks, which may be many thousands; the Ranks tab fetches them.
  const result = useRunQuery<Status>('pipeline', {}, { every: tab === 'ranks' ? 5000 : 0 });
  const status = ticked ?? result.data;
  if (!status) {
    if (!result.problem) return <Waiting label="loading the pipeline status" lines={8} />;
    if (result.problem.status !== 404)
      return <Failure problem={result.problem} retry={result.refresh} />;
    return (
      <Empty title="No pipeline status for this run.">
        <p>
          Only the process that stores a run provides it. {overview?.run ?? 'The run'} is opened
          read-only; see the other views for its results.
        </p>
      </Empty>
    );
  }
  const wrong = (status.health ?? []).filter((h) => !h.ok);
  return (
    <div className="pipeline">
      <h1 className="visually-hidden">Pipeline</h1>
      <Health status={status} incomplete={overview?.incomplete === true} />
      <PipelineTiles status={status} />
      <section className="panel pipeline-tables" aria-label={tabNames[tab]}>
        <div className="tabs" role="tablist" aria-label="Pipeline parts">
          {(Object.keys(tabNames) as (keyof typeof tabNames)[]).map((t) => (
            <button
              key={t}
              type="button"
              role="tab"
              aria-selected={t === tab}
              onClick={() => setTab(t)}
            >
              {tabNames[t]}
            </button>
          ))}
          <span className="push" />
          {wrong.length === 0 && (
            <span className="muted small">version {status.run.version ?? '–'}</span>
          )}
        </div>
        <div role="tabpanel" className="tab-panel">
          {tab === 'analyzers' && <Analyzers status={status} />}
          {tab === 'ranks' && <Ranks result={result} nodes={status.nodes ?? []} />}
          {tab === 'services' && <Services status={status} />}
          {tab === 'tallies' && <Tallies status={status} />}
          {tab === 'cost' && <Costs status={status} />}
        </div>
      </section>
    </div>
  );
}

/** Problems of the pipeline, or that there are none. */
function Health({ status, incomplete }: { status: Status; incomplete: boolean }) {
  const wrong = (status.health ?? []).filter((h) => !h.ok);
  if (wrong.length === 0 && incomplete) {
    return (
      <Notice level="watch">
        The run has ended, and data is missing. The overview lists what.
      </Notice>
    );
  }
  if (wrong.length === 0) {
    const n = (status.health ?? []).length;
    return (
      <Notice level="good">
        {status.run.state === 'finished'
          ? 'The run has ended. No problems reported.'
          : n === 0
            ? 'No problems reported.'
            : `${plural(n, 'part')} healthy.`}
      </Notice>
    );
  }
  return (
    <div className="notices">
      {wrong.map((h) => (
        <Notice key={h.part + h.sentence} level={h.severity === 'error' ? 'bad' : 'watch'}>
          <strong>{h.part}</strong>: {ended(h.sentence)}
        </Notice>
      ))}
    </div>
  );
}
