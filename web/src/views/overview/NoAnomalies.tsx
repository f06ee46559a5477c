import type { Overview } from '../../api/index.ts';
import { count, duration } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { FunctionName } from '../../ui/index.ts';

/** Reports that there are no anomalies, and lists the slowest calls. */
export function NoAnomalies({ overview }: { overview: Overview }) {
  const href = useHref();
  const { calls } = overview.figures;
  return (
    <section className="panel top-findings" aria-labelledby="none-title">
      <header className="panel-head">
        <h2 id="none-title">
          {count(overview.figures.anomalies)} anomalies
          {calls === undefined ? '' : ` in ${count(calls)} calls`}
        </h2>
      </header>
      {overview.slowest.length > 0 && <p className="heat-words">Slowest calls:</p>}
      <ol>
        {overview.slowest.map((s) => (
          <li key={`${s.program}:${s.function}`}>
            <a className="top-finding" href={href({ view: 'functions', query: { q: s.function } })}>
              <span className="top-line">
                <FunctionName name={s.function} most={34} />
                <strong className="nowrap">{duration(s.longest_us)}</strong>
              </span>
              <span className="top-line small">
                {count(s.calls)} calls, {duration(s.mean_us)} on average
              </span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
