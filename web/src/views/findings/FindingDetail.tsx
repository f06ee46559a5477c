import { useState } from 'react';
import { useLive, useRunQuery, type Finding, type Plot, type Query } from '../../api/index.ts';
import { selectionOf, writeSelection } from '../../explain/index.ts';
import { count, duration, plural } from '../../format/index.ts';
import { SlowPeer } from '../../peers/index.ts';
import { eventPath, go, useHref, useRoute } from '../../route/index.ts';
import { copyText, Failure, FunctionPlace, Kind, ended, Term, Waiting } from '../../ui/index.ts';
import { EventList } from './EventList.tsx';
import { LabelForm } from './LabelForm.tsx';
import { findingMarkdown } from './markdown.ts';
import { StripPlot } from './StripPlot.tsx';

interface DetailProps {
  finding: Finding;
  all: readonly Finding[];
  writable: boolean;
  /** Whether the finding is in the list above. */
  listed: boolean;
  onChanged: () => void;
}

/** Tooltips of what was late. */
const lateWords: Readonly<Record<string, string>> = {
  host: 'code on a processor',
  device: 'a GPU, or calls that wait for it',
  communication: 'messages and collective operations between ranks',
};

/** Details of a finding: summary, executions over time and actions. */
export function FindingDetail({ finding, all, writable, listed, onChanged }: DetailProps) {
  const { run, refresh } = useLive();
  const href = useHref();
  const route = useRoute();
  const [status, setStatus] = useState('');
  const plot = useRunQuery<Plot>(
    `findings/${encodeURIComponent(finding.key)}/plot`,
    { limit: 2000 },
    { every: 4000 },
  );
  const cause = all.find((i) => i.finding === finding.cause);
  const victims = all.filter((i) => i.cause === finding.finding && i !== finding);
  const copy = () => {
    void copyText(findingMarkdown(finding, run, location.href)).then((ok) =>
      setStatus(ok ? 'copied' : 'copy failed: the browser blocks clipboard access'),
    );
  };
  return (
    <section className="panel finding" aria-label={`Finding ${finding.finding}`}>
      <header className="finding-head">
        <div className="finding-words">
          <h2>
            <Kind kind={finding.kind} /> <Term name="kind" mark />{' '}
            {finding.function === '' ? (
              'whatever runs'
            ) : (
              <FunctionPlace name={finding.function} most={70} />
            )}
          </h2>
          <p className="finding-sentence">{ended(finding.summary)}</p>
          {finding.reason !== undefined && (
            <p>
              <Term name="withdrawn">Withdrawn</Term>: {ended(finding.reason)}
            </p>
          )}
          <p>
            Lost <strong>{duration(finding.lost_us)}</strong>: {duration(finding.lost_own_us)}{' '}
            <Term name="own" />, {duration(finding.lost_caused_us)} <Term name="caused" />
          </p>
          <p className="finding-links">
            {finding.late !== undefined && (
              <span title={`Lost most of the time: ${lateWords[finding.late] ?? finding.late}`}>
                late: <strong>{finding.late}</strong>
              </span>
            )}
            {cause && (
              <span>
                waited for <a href={href({ query: { sel: cause.key } })}>finding {cause.finding}</a>
              </span>
            )}
            {victims.length > 0 && (
              <span>
                made others wait:{' '}
                {victims.slice(0, 5).map((v, n) => (
                  <span key={v.key}>
                    {n > 0 && ', '}
                    <a href={href({ query: { sel: v.key } })}>finding {v.finding}</a>
                  </span>
                ))}{' '}
                ({duration(finding.lost_caused_us)} on {plural(finding.wait_ranks ?? 0, 'rank')})
              </span>
            )}
            {finding.function_id !== undefined && (
              <a
                href={href({
                  view: 'functions',
                  query: { sel: finding.function_id, program: finding.program },
                })}
              >
                all findings of this function
              </a>
            )}
            {!listed && <span className="muted">hidden by the active filters</span>}
          </p>
        </div>
        <div className="finding-actions">
          {finding.example !== undefined && (
            <a
              className="button primary"
              href={href({ event: eventPath(finding.program, finding.example) })}
            >
              Evidence <kbd>↵</kbd>
            </a>
          )}
          <a
            className="button"
            title="Explain how these executions differ"
            href={href({
              query: {
                explain: writeSelection({ ...selectionOf(route, undefined), finding: finding.key }),
              },
            })}
          >
            Explain <kbd>e</kbd>
          </a>
          <LabelForm
            finding={finding}
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
            aria-label="Close the finding"
            onClick={() => go({ query: { sel: '' } })}
          >
            ×
          </button>
          <span role="status" className="muted">
            {status}
          </span>
        </div>
      </header>
      {finding.kind === 'slow-peer' || finding.form === 'lasting' ? (
        <div className="finding-scroll">
          <SlowPeer finding={finding} />
          {(plot.data?.points.length ?? 0) > 0 && <Executions plot={plot} finding={finding} />}
        </div>
      ) : (
        <Executions plot={plot} finding={finding} />
      )}
    </section>
  );
}

/** The executions of a finding, over time and as a list. */
function Executions({ plot, finding }: { plot: Query<Plot>; finding: Finding }) {
  if (!plot.data) {
    if (plot.problem) return <Failure problem={plot.problem} retry={plot.refresh} />;
    return <Waiting label="loading the executions" lines={5} />;
  }
  return (
    <div className="finding-body">
      <div className="finding-plot" data-figure>
        <StripPlot plot={plot.data} finding={finding} />
        {plot.data.total > plot.data.points.length && (
          <p className="muted small">
            Showing {count(plot.data.points.length)} of {count(plot.data.total)}, by lost time.
            Filter by rank or time to see others.
          </p>
        )}
      </div>
      <EventList plot={plot.data} finding={finding} />
    </div>
  );
}
