import { useLive, useRunQuery, type Status } from '../../api/index.ts';
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
  services: 'Parameter server and store',
  tallies: 'Repaired and lost',
  cost: 'Cost by host',
} as const;

/** Can I trust this, and what does it cost my job? */
export default function PipelineView() {
  const { status: ticked, overview } = useLive();
  const [tab, setTab] = useParam('tab', tabs);
  // Ticks come without ranks, which may be many thousands: they are asked for where they are shown.
  const asked = useRunQuery<Status>('pipeline', {}, { every: tab === 'ranks' ? 5000 : 0 });
  const status = ticked ?? asked.data;
  if (!status) {
    if (!asked.problem) return <Waiting label="loading the state of the pipeline" lines={8} />;
    if (asked.problem.status !== 404)
      return <Failure problem={asked.problem} retry={asked.refresh} />;
    return (
      <Empty title="The pipeline of this run is not known.">
        <p>
          It is known of a run while the process that stores it is asked.{' '}
          {overview?.run ?? 'The run'} is only read here: what it found is in the other views.
        </p>
      </Empty>
    );
  }
  const wrong = (status.health ?? []).filter((h) => !h.ok);
  return (
    <div className="pipeline">
      <h1 className="visually-hidden">Pipeline</h1>
      <Health status={status} />
      <PipelineTiles status={status} />
      <section className="panel pipeline-tables" aria-label={tabNames[tab]}>
        <div className="tabs" role="tablist" aria-label="Parts of the pipeline">
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
          {tab === 'ranks' && <Ranks asked={asked} nodes={status.nodes ?? []} />}
          {tab === 'services' && <Services status={status} />}
          {tab === 'tallies' && <Tallies status={status} />}
          {tab === 'cost' && <Costs status={status} />}
        </div>
      </section>
    </div>
  );
}

/** What is not well, in sentences that say what to do; else that all is. */
function Health({ status }: { status: Status }) {
  const wrong = (status.health ?? []).filter((h) => !h.ok);
  if (wrong.length === 0) {
    const n = (status.health ?? []).length;
    return (
      <Notice level="good">
        {status.run.state === 'finished'
          ? 'The run has ended; nothing reports a problem.'
          : n === 0
            ? 'Nothing reports a problem.'
            : `All ${n} parts are well.`}
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
