import type { ReactNode } from 'react';
import { useLive, type Evidence } from '../../api/index.ts';
import { count, duration, micro, short, statusLabel } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { CallPath, FunctionPlace, isTerm, Kind, Notice, Term, When } from '../../ui/index.ts';

/** Tooltips of anomaly states. */
export const statusWords: Readonly<Record<string, string>> = {
  provisional: 'flagged during the run; the final review may withdraw it',
  confirmed: 'flagged during the run and confirmed by the final review of all calls',
  promoted: 'found by the final review of all calls',
  withdrawn: 'flagged during the run, but usual according to the final review of all calls',
};

/** Summary, reason, place, time and cost of an execution. */
export function Head({ evidence: e }: { evidence: Evidence }) {
  const { overview } = useLive();
  const href = useHref();
  const programs = (overview?.programs.length ?? 0) > 1;
  const level = !e.anomaly || e.status === 'withdrawn' ? 'good' : e.finding ? 'bad' : 'watch';
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
            <a href={href({ view: 'findings', query: { rank: e.rank } })}>rank {e.rank}</a>
            {e.host !== '' && (
              <>
                {' '}
                on <a href={href({ view: 'findings', query: { host: e.host } })}>{e.host}</a>
              </>
            )}
            , {threadWords(e)}
            {programs && `, program ${e.program}`}
          </Fact>
          <Fact name="When" title="Since the start of the run">
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
  if (!e.anomaly) return <span title="Kept for comparison">typical</span>;
  const status = e.status ?? 'provisional';
  const label = statusLabel(status);
  return (
    <span className={`evidence-status ${status}`} title={statusWords[status]}>
      {isTerm(label) ? <Term name={label} /> : label}
    </span>
  );
}

/** The lost time and other times. */
function Costs({ evidence: e }: { evidence: Evidence }) {
  const withdrawn = e.status === 'withdrawn';
  return (
    <div className="evidence-costs">
      <div title="Time beyond the usual of the function">
        <span className={`evidence-lost ${withdrawn ? 'void' : ''}`}>
          {e.anomaly ? duration(e.lost_us) : duration(0)}
        </span>
        <span className="muted">{withdrawn ? 'not lost: withdrawn' : 'lost'}</span>
      </div>
      <dl>
        <div title="Own time, without callees">
          <dt>
            <Term name="own time" />
          </dt>
          <dd>{duration(e.exclusive_us)}</dd>
        </div>
        <div title="Time from entry to exit">
          <dt>
            <Term name="inclusive" />
          </dt>
          <dd>{duration(e.inclusive_us)}</dd>
        </div>
        {e.anomaly && (
          <div title="Rarity as computed by the detector; larger is rarer">
            <dt>
              <Term name="rarity" />
            </dt>
            <dd>{rarityText(e)}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}

/** The rarity of an anomaly with the detector's limit, if the record has it. */
function rarityText(e: Evidence): string {
  const record = e.record as { algo_params?: { internal_global_threshold?: unknown } } | null;
  const limit = record?.algo_params?.internal_global_threshold;
  return short(e.score) + (typeof limit === 'number' ? ` (flagged above ${short(limit)})` : '');
}

/** A notice for typical, withdrawn and provisional executions. */
export function HeadNotice({ evidence: e }: { evidence: Evidence }) {
  if (!e.anomaly) {
    return <Notice level="good">Typical execution, kept for comparison with anomalies.</Notice>;
  }
  if (e.status === 'withdrawn') {
    return (
      <Notice level="unknown">
        Withdrawn: flagged during the run, but usual according to the final review of all calls. Not
        counted in figures and findings.
      </Notice>
    );
  }
  if (e.status === 'provisional') {
    return <Notice level="unknown">Provisional: the final review confirms or withdraws it.</Notice>;
  }
  return null;
}

/** The thread, or the stream of a GPU. */
function threadWords(e: Evidence): string {
  if (!e.gpu || (e.gpu.device < 0 && e.gpu.stream < 0))
    return e.lanes[0]?.name.replace(/^rank -?\d+, /, '') ?? `thread ${e.thread}`;
  const stream = e.gpu.stream < 0 ? '' : ` stream ${e.gpu.stream}`;
  return `GPU${e.gpu.device < 0 ? '' : ` ${e.gpu.device}`}${stream}`;
}
