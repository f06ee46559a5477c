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

/** One execution: what happened, why it was flagged, who caused it. */
export default function EvidenceView(props: { event: string }) {
  if (props.event === '') return <Chooser />;
  const id = splitEvent(props.event);
  if (!id) return <NotFound event={props.event} />;
  return <One {...id} />;
}

function One({ program, event }: { program: number; event: string }) {
  const asked = useRunQuery<Evidence>(
    `events/${encodeURIComponent(event)}/evidence`,
    { program },
    { every: 10_000 },
  );
  const e = asked.data;
  if (!e) {
    if (asked.problem?.status === 404) return <NotFound event={`${program}:${event}`} />;
    if (asked.problem) return <Failure problem={asked.problem} retry={asked.refresh} />;
    return <Waiting label="loading the evidence" lines={10} />;
  }
  return (
    <div className="evidence">
      {asked.problem && (
        <Notice level="watch">
          What is shown may be old: {sentence(asked.problem.message)} {sentence(asked.problem.hint)}
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

/** There is no such execution, or none any more. */
function NotFound({ event }: { event: string }) {
  const href = useHref();
  const { overview, run } = useLive();
  return (
    <Empty
      title={`There is no event ${event} in run ${run}.`}
      action={
        <span className="evidence-notice-actions">
          <a className="button" href={href({ view: 'evidence', event: '' })}>
            Anomalies that lost most
          </a>
          <a className="button" href={href({ view: 'issues' })}>
            Issues
          </a>
        </span>
      }
    >
      <p>
        Events are written PROGRAM:RANK:STEP:ROW, as 0:3:19:855. Only anomalies and some typical
        executions are kept
        {overview?.live === true ? ', and new ones are stored a few seconds after they end' : ''}.
      </p>
    </Empty>
  );
}
