import { useState } from 'react';
import { asProblem, Problem, runPath, useLive, type Evidence } from '../../api/index.ts';
import { count, shortName } from '../../format/index.ts';
import { useKeys } from '../../keys/index.ts';
import { useHandover, viewer, type Progress, type Trace } from '../../perfetto/index.ts';
import { eventPath, go, useHref } from '../../route/index.ts';
import { copyText, Menu, Notice, saveURL, sentence } from '../../ui/index.ts';
import { evidenceMarkdown } from './markdown.ts';

type Format = 'perfetto' | 'chrome' | 'json';

const formats: readonly (readonly [Format, string, string])[] = [
  ['perfetto', 'Perfetto trace', '.perfetto-trace'],
  ['chrome', 'Chrome trace (JSON)', '.trace.json'],
  ['json', 'The record (JSON)', '.json'],
];

function windowPath(run: string, e: Evidence, format: Format): string {
  const path = `events/${encodeURIComponent(e.event_id)}/window`;
  return runPath(run, path, { format, program: e.program });
}

function fileName(e: Evidence, suffix: string): string {
  return `chimbuko-${e.program}-${e.event_id.replace(/[^\w-]+/g, '-')}${suffix}`;
}

/** Gets the calls around an execution as a trace for Perfetto. */
async function getTrace(run: string, e: Evidence): Promise<Trace> {
  const answer = await fetch(windowPath(run, e, 'perfetto'), { credentials: 'same-origin' });
  if (!answer.ok) {
    const told = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string };
    throw new Problem(told.error ?? `the answer was ${answer.status}`, told.hint, answer.status);
  }
  return {
    buffer: await answer.arrayBuffer(),
    title: `${shortName(e.function, 60)} on rank ${e.rank}, event ${e.event_id}`,
    fileName: fileName(e, '.perfetto-trace'),
  };
}

/** What can be done with an execution: look at it elsewhere, keep it, go to others like it, tell of it. */
export function Actions({ evidence: e }: { evidence: Evidence }) {
  const { run } = useLive();
  const href = useHref();
  const [progress, start] = useHandover();
  const [said, say] = useState('');
  const open = () => start(() => getTrace(run, e));
  const save = (format: Format, suffix: string) =>
    saveURL(windowPath(run, e, format), fileName(e, suffix));
  const other = (id: string | undefined) =>
    id === undefined || id === ''
      ? undefined
      : { event: eventPath(e.program, id), query: { w: '', call: '' } };
  const [before, next] = [other(e.previous), other(e.next)];
  const tell = (what: string, text: string) => {
    void copyText(text).then((ok) =>
      say(ok ? `${what} copied` : 'the browser does not let pages copy'),
    );
  };
  const group = 'Evidence';
  useKeys([
    {
      key: '[',
      label: 'the anomaly before, of the same issue',
      group,
      run: () => before && go(before),
    },
    { key: ']', label: 'the next anomaly of the same issue', group, run: () => next && go(next) },
    { key: 'o', label: 'open in Perfetto', group, run: open },
  ]);
  return (
    <>
      <div className="evidence-actions" role="toolbar" aria-label="Actions">
        <button type="button" className="button primary" onClick={open}>
          Open in Perfetto <kbd>o</kbd>
        </button>
        <Menu label="Download">
          {formats.map(([format, words, suffix]) => (
            <button
              key={format}
              type="button"
              className="menu-item"
              onClick={() => save(format, suffix)}
            >
              {words}
            </button>
          ))}
        </Menu>
        <span className="evidence-divider" />
        {e.issue_key !== undefined && e.issue_key !== '' && (
          <a
            className="button"
            href={href({ view: 'issues', query: { sel: e.issue_key } })}
            title={`Issue ${e.issue ?? ''}: anomalies with the same function, call path and kind`}
          >
            Same signature ({count(e.same_signature)})
          </a>
        )}
        {e.host !== '' && (
          <a
            className="button"
            href={href({ view: 'issues', query: { host: e.host } })}
            title={`Issues on ${e.host}`}
          >
            Same host
          </a>
        )}
        <Neighbor to={before && href(before)} label="Prev" shortcut="[" />
        <Neighbor to={next && href(next)} label="Next" shortcut="]" />
        <span className="push" />
        <span role="status" className="muted">
          {said}
        </span>
        <button type="button" className="button quiet" onClick={() => tell('link', location.href)}>
          Copy link <kbd>y</kbd>
        </button>
        <button
          type="button"
          className="button quiet"
          onClick={() => tell('Markdown', evidenceMarkdown(e, run, location.href))}
        >
          Copy as Markdown
        </button>
      </div>
      <HandoverNotice
        progress={progress}
        onSave={() => save('perfetto', '.perfetto-trace')}
        onRetry={open}
      />
    </>
  );
}

/** The anomaly of the issue before or after; it stays in its place where there is none. */
function Neighbor(props: { to: string | undefined; label: string; shortcut: string }) {
  if (props.to === undefined) {
    return (
      <button type="button" className="button" disabled title="There is no other of this issue">
        {props.label} <kbd>{props.shortcut}</kbd>
      </button>
    );
  }
  return (
    <a className="button" href={props.to} title="By time, of the same issue">
      {props.label} <kbd>{props.shortcut}</kbd>
    </a>
  );
}

/** How far the hand-over to Perfetto is, where there is something to say. */
export function HandoverNotice(props: {
  progress: Progress;
  onSave: () => void;
  onRetry: () => void;
}) {
  const { progress } = props;
  const host = viewer.replace('https://', '');
  const buttons = (
    <span className="evidence-notice-actions">
      <button type="button" className="button" onClick={props.onSave}>
        Download the trace
      </button>
      <button type="button" className="button quiet" onClick={props.onRetry}>
        Try again
      </button>
    </span>
  );
  switch (progress.at) {
    case 'waiting':
      return <Notice level="unknown">Waiting for {host} to take the trace…</Notice>;
    case 'done':
      return <Notice level="good">{host} has the trace, in its own window.</Notice>;
    case 'blocked':
      return (
        <Notice level="watch" action={buttons}>
          The browser did not let this page open a window. Allow it, or download the trace and open
          it in Perfetto.
        </Notice>
      );
    case 'unreachable':
      return (
        <Notice level="watch" action={buttons}>
          Perfetto is out of reach: {host} does not answer, as on machines without a way to the
          Internet. Download the trace and open it where there is one; the timeline below shows the
          same.
        </Notice>
      );
    case 'closed':
      return (
        <Notice level="unknown" action={buttons}>
          The window of Perfetto was closed before it had the trace.
        </Notice>
      );
    case 'failed': {
      const problem = asProblem(progress.problem);
      return (
        <Notice level="watch" action={buttons}>
          The trace could not be had: {sentence(problem.message)} {sentence(problem.hint)}
        </Notice>
      );
    }
    default:
      return null;
  }
}
