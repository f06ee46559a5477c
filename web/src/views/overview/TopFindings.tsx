import { useRunQuery, type Figures, type Finding, type FindingList } from '../../api/index.ts';
import { count, duration, place } from '../../format/index.ts';
import { useHref, useRoute, useSpan } from '../../route/index.ts';
import { FindingSpark, FindingTime, FunctionName, Kind, Term } from '../../ui/index.ts';
import { fold, narrow } from '../findings/select.ts';

/** The costliest open findings that the filters of the address select; undefined while loading, or without filters. */
function useSelected(most: number): { shown: Finding[]; total: number } | undefined {
  const { query } = useRoute();
  const { t0, t1 } = useSpan();
  const { host = '', rank = '', program = '' } = query;
  const narrowed = [host, rank, program, t0 ?? '', t1 ?? ''].some((v) => v !== '');
  const result = useRunQuery<FindingList>(narrowed ? 'findings' : undefined, {}, { every: 3000 });
  if (!narrowed || !result.data) return undefined;
  const where = { kinds: [], host, rank, program, t0, t1 };
  const open = { muted: false, minor: false, withdrawn: false };
  const { top } = fold(narrow(result.data.rows, { ...where, ...open }));
  return { shown: top.slice(0, most), total: top.length };
}

/** The costliest findings with links to their details. */
export function TopFindings(props: { findings: readonly Finding[]; figures: Figures }) {
  const href = useHref();
  const selected = useSelected(props.findings.length);
  const findings = selected?.shown ?? props.findings;
  const all = count(props.figures.findings);
  return (
    <section className="panel top-findings" aria-labelledby="top-title">
      <header className="panel-head">
        <h2 id="top-title">Costliest findings</h2>
        <Term name="cost" mark />
        <span className="push" />
        <a href={href({ view: 'findings' })}>
          {selected ? `${count(selected.total)} selected of ${all}` : `all ${all}`}
        </a>
      </header>
      {findings.length === 0 && <p className="heat-words">No finding matches the filters.</p>}
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
                <strong className="nowrap" title="Total lost time: own and caused">
                  {duration(i.lost_us)}
                </strong>
              </span>
              <span className="top-line small">
                <span className="nowrap">
                  {duration(i.lost_own_us)} own, {duration(i.lost_caused_us)} caused
                </span>
              </span>
              <span className="top-line small">
                <span className="cut">{place(i)}</span>
                <Kind kind={i.kind} />
              </span>
              <span className="top-line small">
                <span className="nowrap">
                  <FindingTime finding={i} />
                  {i.status !== 'confirmed' && <span className="tag">{i.status}</span>}
                </span>
                <FindingSpark finding={i} width={110} height={18} />
              </span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
