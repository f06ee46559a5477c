import { useRunQuery, type Finding, type SlowEvidence } from '../api/index.ts';
import { ended, Failure, Waiting } from '../ui/index.ts';
import { RatioChart } from './RatioChart.tsx';
import { Sides, SlowCounters, SlowFunctions } from './SlowTables.tsx';
import './peers.css';

/** The evidence of a finding about a slow peer. */
export function SlowPeer({ finding }: { finding: Finding }) {
  const result = useRunQuery<SlowEvidence>(
    `findings/${encodeURIComponent(finding.key)}/slow-peer`,
    {},
    { every: 4000 },
  );
  const e = result.data;
  if (!e) {
    if (result.problem?.status === 404) return null; // the comparison has changed since
    if (result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
    return <Waiting label="loading the comparison with peers" lines={5} />;
  }
  return (
    <div className="slow-peer">
      <RatioChart windows={e.windows} label={e.measure} />
      <p>
        <strong>Evidence</strong> {ended(e.strength)}
      </p>
      <p>
        <strong>Wrong if</strong> {ended(e.wrong_if)}
      </p>
      <div className="slow-peer-tables">
        <SlowFunctions functions={e.slow.functions} lost={e.lost_own_us} />
        <div>
          {e.twin && <Sides here={e.here} twin={e.twin} />}
          <SlowCounters counters={e.slow.counters} />
        </div>
      </div>
    </div>
  );
}
