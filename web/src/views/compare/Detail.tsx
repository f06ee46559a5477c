import { useQuery, withParams, type Comparison, type HistogramPair } from '../../api/index.ts';
import { bare, count, duration, source } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { CallPath, Empty, ExportFigure, Failure, PlainTable, Waiting } from '../../ui/index.ts';
import { distanceText, distanceTitle, movedTitle, type Row } from './columns.tsx';
import { Overlay } from './Overlay.tsx';
import { distanceWords } from './overlay.ts';

/** Details of a change beside the table. */
export function Detail(props: { row: Row; of: Comparison; onClose: () => void }) {
  const { row, of: c } = props;
  const href = useHref();
  const lines: [string, string, string][] = [
    ['lost', duration(row.lost_us[0]), duration(row.lost_us[1])],
    ['calls', count(row.calls[0]), count(row.calls[1])],
    ['mean call time', duration(row.mean_us[0]), duration(row.mean_us[1])],
  ];
  if (row.anomalies)
    lines.splice(1, 0, ['anomalies', count(row.anomalies[0]), count(row.anomalies[1])]);
  if (row.hosts[0].length + row.hosts[1].length > 0)
    lines.push(['main hosts', row.hosts[0].join(', ') || '–', row.hosts[1].join(', ') || '–']);
  return (
    <aside className="panel compare-detail" aria-label="Change details">
      <header className="panel-head">
        <h2>{row.call_path === '' ? 'Function' : 'Call path'}</h2>
        <span className="push" />
        <button
          type="button"
          className="button quiet"
          aria-label="Close the change"
          onClick={props.onClose}
        >
          ×
        </button>
      </header>
      <div className="compare-detail-body">
        <div>
          <p className="compare-name name">{bare(row.function)}</p>
          {source(row.function) !== '' && <p className="muted">{source(row.function)}</p>}
          {row.call_path !== '' && (
            <p className="muted">
              <CallPath path={row.call_path} parts={5} />
            </p>
          )}
          <p className="compare-links">
            {[c.a, c.b].map((r, i) =>
              r.id.startsWith('0:') && row.lost_us[i as 0 | 1] > 0 ? (
                <a
                  key={i}
                  href={href({ view: 'findings', query: { run: r.name, q: row.function } })}
                >
                  findings in {i === 0 ? 'A' : 'B'}
                </a>
              ) : null,
            )}
          </p>
        </div>
        <PlainTable
          name={`${bare(row.function)} A and B`}
          title={`${bare(row.function)} in A and B`}
        >
          <table className="compare-numbers">
            <thead>
              <tr>
                <td />
                <th scope="col" className="a">
                  A
                </th>
                <th scope="col" className="b">
                  B
                </th>
              </tr>
            </thead>
            <tbody>
              {lines.map(([name, a, b]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{a}</td>
                  <td>{b}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </PlainTable>
        <Times row={row} of={c} />
      </div>
    </aside>
  );
}

/** Overlaid histograms of call times. */
function Times({ row, of: c }: { row: Row; of: Comparison }) {
  const result = useQuery<HistogramPair>(
    withParams('api/v1/compare/histograms', {
      a: c.a.id,
      b: c.b.id,
      program: row.program,
      function: row.function,
    }),
  );
  const h = result.data;
  const missing = h?.missing ?? '';
  return (
    <section data-figure>
      <h3>
        Call times{' '}
        <span className="compare-legend" aria-hidden="true">
          <span className="a">A</span> <span className="b">B</span>
        </span>
      </h3>
      {h && missing === '' && (
        <ExportFigure title={`Call times of ${bare(row.function)} in A and B`} />
      )}
      {!h && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!h && !result.problem && <Waiting label="loading the histograms" lines={4} />}
      {missing !== '' && <Empty title={missing} />}
      {h && missing === '' && (
        <>
          <Overlay pair={h} />
          <p className="compare-distance">{distanceWords(h)}</p>
          <dl className="compare-distances">
            <div title={distanceTitle}>
              <dt>distance</dt>
              <dd>{distanceText(h.distance)}</dd>
            </div>
            <div title={movedTitle}>
              <dt>moved</dt>
              <dd>{duration(h.moved_us)}</dd>
            </div>
          </dl>
        </>
      )}
    </section>
  );
}
