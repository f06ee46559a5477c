import type { ReactNode } from 'react';
import { useLive, type Evidence } from '../../api/index.ts';
import { count, duration, micro, short } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { CallPath, FunctionPlace, Kind, Notice, When } from '../../ui/index.ts';

/** What the states of an anomaly mean. */
export const statusWords: Readonly<Record<string, string>> = {
  provisional: 'flagged during the run; the review at its end may still withdraw it',
  confirmed: 'flagged during the run, and again by the review at its end, which knows all calls',
  promoted: 'found by the review at the end of the run, which knows all calls',
  withdrawn: 'flagged during the run; the review at its end, which knows all calls, found it usual',
};

/** What happened, in a sentence, with why it was flagged, where and when it was, and what it cost. */
export function Head({ evidence: e }: { evidence: Evidence }) {
  const { overview } = useLive();
  const href = useHref();
  const programs = (overview?.programs.length ?? 0) > 1;
  const level = !e.anomaly || e.status === 'withdrawn' ? 'good' : e.issue ? 'bad' : 'watch';
  return (
    <header className="panel evidence-head">
      <div className="evidence-words">
        <h1 className={`evidence-sentence ${level}`}>{micro(e.sentence)}.</h1>
        {e.why !== undefined && e.why !== '' && <p className="evidence-why">It {micro(e.why)}.</p>}
        <dl className="evidence-facts">
          <Fact name="Status">
            <Status evidence={e} />
          </Fact>
          {e.kind !== undefined && e.kind !== '' && (
            <Fact name="Kind">
              <Kind kind={e.kind} />
            </Fact>
          )}
          <Fact name="Where">
            <a href={href({ view: 'issues', query: { rank: e.rank } })}>rank {e.rank}</a>
            {e.host !== '' && (
              <>
                {' '}
                on <a href={href({ view: 'issues', query: { host: e.host } })}>{e.host}</a>
              </>
            )}
            , thread {e.thread}
            {programs && `, program ${e.program}`}
          </Fact>
          <Fact name="When" title="Since the begin of the run">
            <When s={e.at_s} span={1} /> <span className="muted">step {count(e.io_step)}</span>
          </Fact>
          <Fact name="Function">
            <a href={href({ view: 'functions', query: { sel: e.function_id } })}>
              <FunctionPlace name={e.function} most={44} />
            </a>
          </Fact>
          <Fact name="Call path">
            <CallPath path={e.call_path} parts={3} />
          </Fact>
        </dl>
      </div>
      <Costs evidence={e} />
    </header>
  );
}

function Fact(props: { name: string; title?: string; children: ReactNode }) {
  return (
    <div>
      <dt title={props.title}>{props.name}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

function Status({ evidence: e }: { evidence: Evidence }) {
  if (!e.anomaly) return <span title="An execution that was kept to compare with">typical</span>;
  const status = e.status ?? 'provisional';
  return (
    <span className={`evidence-status ${status}`} title={statusWords[status]}>
      {status}
    </span>
  );
}

/** What it cost, large. */
function Costs({ evidence: e }: { evidence: Evidence }) {
  const withdrawn = e.status === 'withdrawn';
  return (
    <div className="evidence-costs">
      <div title="Its time minus what is typical of the function">
        <span className={`evidence-lost ${withdrawn ? 'void' : ''}`}>
          {e.anomaly ? duration(e.lost_us) : duration(0)}
        </span>
        <span className="muted">{withdrawn ? 'not lost: withdrawn' : 'lost'}</span>
      </div>
      <dl>
        <div title="Time in the function itself, without those that it called">
          <dt>itself</dt>
          <dd>{duration(e.exclusive_us)}</dd>
        </div>
        <div title="Time from entry to exit">
          <dt>in all</dt>
          <dd>{duration(e.inclusive_us)}</dd>
        </div>
        {e.anomaly && (
          <div title="How rare it is, as the detector puts it: larger is rarer">
            <dt>score</dt>
            <dd>{short(e.score)}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}

/** What must be known of an execution that is not an anomaly like others. */
export function HeadNotice({ evidence: e }: { evidence: Evidence }) {
  if (!e.anomaly) {
    return (
      <Notice level="good">
        This is a typical execution, which was kept to compare anomalies with. Nothing is wrong with
        it.
      </Notice>
    );
  }
  if (e.status === 'withdrawn') {
    return (
      <Notice level="unknown">
        Withdrawn: it was flagged during the run, but the review at its end, which knows all calls,
        found it usual. It counts in no figure and in no issue.
      </Notice>
    );
  }
  if (e.status === 'provisional') {
    return (
      <Notice level="unknown">
        Provisional: models still learn. The review at the end of the run confirms or withdraws it.
      </Notice>
    );
  }
  return null;
}
