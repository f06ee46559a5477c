import type { Figures, Finding } from '../../api/index.ts';
import { kindVar } from '../../color/index.ts';
import { count, duration, names, ranks } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { FunctionName, Kind, Sparkline, When } from '../../ui/index.ts';

/** The costliest findings with links to their details. */
export function TopFindings({
  findings,
  figures,
}: {
  findings: readonly Finding[];
  figures: Figures;
}) {
  const href = useHref();
  return (
    <section className="panel top-findings" aria-labelledby="top-title">
      <header className="panel-head">
        <h2 id="top-title">Costliest findings</h2>
        <span className="push" />
        <a href={href({ view: 'findings' })}>all {count(figures.findings)}</a>
      </header>
      <ol>
        {findings.map((i) => (
          <li key={i.key}>
            <a
              className="top-finding"
              href={href({ view: 'findings', query: { sel: i.key } })}
              title={i.summary}
            >
              <span className="top-line">
                {i.function === '' ? 'whatever runs' : <FunctionName name={i.function} most={34} />}
                <strong className="nowrap">{duration(i.lost_us)}</strong>
              </span>
              <span className="top-line small">
                <span className="cut">
                  {names(i.hosts)} · rank {ranks(i.ranks, 3)}
                  {i.rank_count > i.ranks.length ? ` of ${count(i.rank_count)}` : ''}
                </span>
                <Kind kind={i.kind} />
              </span>
              <span className="top-line small">
                <span className="nowrap">
                  <When s={i.from_s} /> – <When s={i.last_s} />
                  {i.status !== 'confirmed' && <span className="tag">{i.status}</span>}
                </span>
                <Sparkline
                  values={i.over_time}
                  label={`${count(i.calls)} calls over the run`}
                  color={kindVar(i.kind)}
                  width={110}
                  height={18}
                />
              </span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
