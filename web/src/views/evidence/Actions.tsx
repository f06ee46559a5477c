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
  ['json', 'Record (JSON)', '.json'],
];

function windowPath(run: string, e: Evidence, format: Format): string {
  const path = `events/${encodeURIComponent(e.event_id)}/window`;
  return runPath(run, path, { format, program: e.program });
}

function fileName(e: Evidence, suffix: string): string {
  return `chimbuko-${e.program}-${e.event_id.replace(/[^\w-]+/g, '-')}${suffix}`;
}

/** Fetches the calls around an execution as a Perfetto trace. */
async function getTrace(run: string, e: Evidence): Promise<Trace> {
  const answer = await fetch(windowPath(run, e, 'perfetto'), { credentials: 'same-origin' });
  if (!answer.ok) {
    const body = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string };
    throw new Problem(
      body.error ?? `the server returned ${answer.status}`,
      body.hint,
      answer.status,
    );
  }
  return {
    buffer: await answer.arrayBuffer(),
    title: `${shortName(e.function, 60)} on rank ${e.rank}, event ${e.event_id}`,
    fileName: fileName(e, '.perfetto-trace'),
  };
}

/** The actions: open in Perfetto, download, related anomalies, copy. */
export function Actions({ evidence: e }: { evidence: Evidence }) {
  const { run } = useLive();
  const href = useHref();
  const [progress, start] = useHandover();
  const [status, setStatus] = useState('');
  const open = () => start(() => getTrace(run, e));
  const save = (format: Format, suffix: string) =>
    saveURL(windowPath(run, e, format), fileName(e, suffix));
  const other = (id: string | undefined) =>
    id === undefined || id === ''
      ? undefined
      : { event: eventPath(e.program, id), query: { w: '', call: '' } };
  const [before, next] = [other(e.previous), other(e.next)];
  const copy = (what: string, text: string) => {
    void copyText(text).then((ok) =>
      setStatus(ok ? `${what} copied` : 'copy failed: the browser blocks clipboard access'),
    );
  };
  const group = 'Evidence';
  useKeys([
    {
      key: '[',
      label: 'previous anomaly of the finding',
      group,
      run: () => before && go(before),
    },
    { key: ']', label: 'next anomaly of the finding', group, run: () => next && go(next) },
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
        {e.finding_key !== undefined && e.finding_key !== '' && (
          <a
            className="button"
            href={href({ view: 'findings', query: { sel: e.finding_key } })}
            title={`Finding ${e.finding ?? ''}: anomalies with the same function, call path and kind`}
          >
            Same finding ({count(e.same_signature)})
          </a>
        )}
        {e.host !== '' && (
          <a
            className="button"
            href={href({ view: 'findings', query: { host: e.host } })}
            title={`Findings on ${e.host}`}
          >
            Same host
          </a>
        )}
        <Neighbor to={before && href(before)} label="Prev" shortcut="[" />
        <Neighbor to={next && href(next)} label="Next" shortcut="]" />
        <span className="push" />
        <span role="status" className="muted">
          {status}
        </span>
        <button type="button" className="button quiet" onClick={() => copy('link', location.href)}>
          Copy link <kbd>y</kbd>
        </button>
        <button
          type="button"
          className="button quiet"
          onClick={() => copy('Markdown', evidenceMarkdown(e, run, location.href))}
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

/** A link to the previous or next anomaly of the finding; disabled if none. */
function Neighbor(props: { to: string | undefined; label: string; shortcut: string }) {
  if (props.to === undefined) {
    return (
      <button type="button" className="button" disabled title="No other anomaly in this finding">
        {props.label} <kbd>{props.shortcut}</kbd>
      </button>
    );
  }
  return (
    <a className="button" href={props.to} title="By time, in the same finding">
      {props.label} <kbd>{props.shortcut}</kbd>
    </a>
  );
}

/** Progress of opening the trace in Perfetto. */
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
        Download trace
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
      return <Notice level="good">{host} opened the trace in its own window.</Notice>;
    case 'blocked':
      return (
        <Notice level="watch" action={buttons}>
          The browser blocked the window. Allow pop-ups, or download the trace and open it in
          Perfetto.
        </Notice>
      );
    case 'unreachable':
      return (
        <Notice level="watch" action={buttons}>
          Cannot reach Perfetto: {host} does not respond. Without Internet access, download the
          trace and open it on another machine, or use the timeline below.
        </Notice>
      );
    case 'closed':
      return (
        <Notice level="unknown" action={buttons}>
          The Perfetto window was closed before the trace was sent.
        </Notice>
      );
    case 'failed': {
      const problem = asProblem(progress.problem);
      return (
        <Notice level="watch" action={buttons}>
          Cannot load the trace: {sentence(problem.message)} {sentence(problem.hint)}
        </Notice>
      );
    }
    default:
      return null;
  }
}
