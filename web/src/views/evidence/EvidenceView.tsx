import { useLive, useRunQuery, type Evidence } from '../../api/index.ts';
import { splitEvent, useHref } from '../../route/index.ts';
import { Empty, Failure, Notice, sentence, Waiting } from '../../ui/index.ts';
import { Actions } from './Actions.tsx';
import { Chooser } from './Chooser.tsx';
import { Context } from './Context.tsx';
import { Head, HeadNotice } from './Head.tsx';
import { RolesPanel } from './Roles.tsx';
import { TimelinePanel } from './TimelinePanel.tsx';
import { Normal, Why } from './Why.tsx';
import './evidence.css';

/** Evidence of one execution: what happened, why it was flagged, and its cause. */
export default function EvidenceView(props: { event: string }) {
  if (props.event === '') return <Chooser />;
  const id = splitEvent(props.event);
  if (!id) return <NotFound event={props.event} />;
  return <One {...id} />;
}

function One({ program, event }: { program: number; event: string }) {
  const result = useRunQuery<Evidence>(
    `events/${encodeURIComponent(event)}/evidence`,
    { program },
    { every: 10_000 },
  );
  const e = result.data;
  if (!e) {
    if (result.problem?.status === 404) return <NotFound event={`${program}:${event}`} />;
    if (result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
    return <Waiting label="loading the evidence" lines={10} />;
  }
  return (
    <div className="evidence">
      {result.problem && (
        <Notice level="watch">
          This view may be outdated: {sentence(result.problem.message)}{' '}
          {sentence(result.problem.hint)}
        </Notice>
      )}
      <HeadNotice evidence={e} />
      <Head evidence={e} />
      <Actions evidence={e} />
      <RolesPanel evidence={e} />
      <TimelinePanel evidence={e} />
      <div className="evidence-columns">
        <Why evidence={e} />
        <Normal evidence={e} />
      </div>
      <Context evidence={e} />
    </div>
  );
}

/** Shown if the store has no such execution. */
function NotFound({ event }: { event: string }) {
  const href = useHref();
  const { overview, run } = useLive();
  return (
    <Empty
      title={`Event ${event} not found in run ${run}.`}
      action={
        <span className="evidence-notice-actions">
          <a className="button" href={href({ view: 'evidence', event: '' })}>
            Anomalies by lost time
          </a>
          <a className="button" href={href({ view: 'findings' })}>
            Findings
          </a>
        </span>
      }
    >
      <p>
        Event IDs have the form PROGRAM:RANK:STEP:ROW, such as 0:3:19:855. Only anomalies and some
        typical executions are kept
        {overview?.live === true ? '; new ones are stored after a few seconds' : ''}.
      </p>
    </Empty>
  );
}
