import { useState } from 'react';
import { useLive, useRunQuery, type Issue, type Plot } from '../../api/index.ts';
import { selectionOf, writeSelection } from '../../explain/index.ts';
import { count, duration, plural } from '../../format/index.ts';
import { eventPath, go, useHref, useRoute } from '../../route/index.ts';
import { copyText, Failure, FunctionPlace, Kind, ended, Waiting } from '../../ui/index.ts';
import { EventList } from './EventList.tsx';
import { LabelForm } from './LabelForm.tsx';
import { issueMarkdown } from './markdown.ts';
import { StripPlot } from './StripPlot.tsx';

interface DetailProps {
  issue: Issue;
  all: readonly Issue[];
  writable: boolean;
  /** Whether the issue is in the list above. */
  listed: boolean;
  onChanged: () => void;
}

/** Details of an issue: summary, executions over time and actions. */
export function IssueDetail({ issue, all, writable, listed, onChanged }: DetailProps) {
  const { run, refresh } = useLive();
  const href = useHref();
  const route = useRoute();
  const [status, setStatus] = useState('');
  const plot = useRunQuery<Plot>(
    `issues/${encodeURIComponent(issue.key)}/plot`,
    { limit: 2000 },
    { every: 4000 },
  );
  const cause = all.find((i) => i.issue === issue.cause);
  const victims = all.filter((i) => i.cause === issue.issue && i !== issue);
  const copy = () => {
    void copyText(issueMarkdown(issue, run, location.href)).then((ok) =>
      setStatus(ok ? 'copied' : 'copy failed: the browser blocks clipboard access'),
    );
  };
  return (
    <section className="panel issue" aria-label={`Issue ${issue.issue}`}>
      <header className="issue-head">
        <div className="issue-words">
          <h2>
            <Kind kind={issue.kind} /> <FunctionPlace name={issue.function} most={70} />
          </h2>
          <p className="issue-sentence">{ended(issue.sentence)}</p>
          <p className="issue-links">
            {cause && (
              <span>
                waited for <a href={href({ query: { sel: cause.key } })}>issue {cause.issue}</a>
              </span>
            )}
            {victims.length > 0 && (
              <span>
                made others wait:{' '}
                {victims.slice(0, 5).map((v, n) => (
                  <span key={v.key}>
                    {n > 0 && ', '}
                    <a href={href({ query: { sel: v.key } })}>issue {v.issue}</a>
                  </span>
                ))}{' '}
                ({duration(issue.waits_lost_us ?? 0)} on {plural(issue.wait_ranks ?? 0, 'rank')})
              </span>
            )}
            {issue.function_id !== undefined && (
              <a
                href={href({
                  view: 'functions',
                  query: { sel: issue.function_id, program: issue.program },
                })}
              >
                all issues of this function
              </a>
            )}
            {!listed && <span className="muted">hidden by the active filters</span>}
          </p>
        </div>
        <div className="issue-actions">
          {issue.example !== undefined && (
            <a
              className="button primary"
              href={href({ event: eventPath(issue.program, issue.example) })}
            >
              Evidence <kbd>↵</kbd>
            </a>
          )}
          <a
            className="button"
            title="Explain how these executions differ"
            href={href({
              query: {
                explain: writeSelection({ ...selectionOf(route, undefined), issue: issue.key }),
              },
            })}
          >
            Explain <kbd>e</kbd>
          </a>
          <LabelForm
            issue={issue}
            writable={writable}
            onChanged={() => {
              onChanged();
              refresh();
            }}
          />
          <button type="button" className="button" onClick={copy}>
            Copy as Markdown
          </button>
          <button
            type="button"
            className="button quiet"
            aria-label="Close the issue"
            onClick={() => go({ query: { sel: '' } })}
          >
            ×
          </button>
          <span role="status" className="muted">
            {status}
          </span>
        </div>
      </header>
      {!plot.data && plot.problem && <Failure problem={plot.problem} retry={plot.refresh} />}
      {!plot.data && !plot.problem && <Waiting label="loading the executions" lines={5} />}
      {plot.data && (
        <div className="issue-body">
          <div className="issue-plot">
            <StripPlot plot={plot.data} issue={issue} />
            {plot.data.total > plot.data.points.length && (
              <p className="muted small">
                Showing {count(plot.data.points.length)} of {count(plot.data.total)}, by lost time.
                Filter by rank or time to see others.
              </p>
            )}
          </div>
          <EventList plot={plot.data} issue={issue} />
        </div>
      )}
    </section>
  );
}
