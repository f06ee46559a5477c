import type { Evidence, Model } from '../../api/index.ts';
import { bare, count, duration } from '../../format/index.ts';
import { algorithmWords, flaggedWords, Histogram, usualWords } from '../../histogram/index.ts';
import { eventPath, useHref } from '../../route/index.ts';
import { Empty, ExportFigure, FunctionName, Notice, PlainTable } from '../../ui/index.ts';
import { difference, notShown, type Part } from './difference.ts';

/** Why it was flagged: its time compared with the model of the function. */
export function Why({ evidence: e }: { evidence: Evidence }) {
  const { model } = e;
  return (
    <section className="panel" aria-labelledby="why-title" data-figure>
      <header className="panel-head">
        <h2 id="why-title">Why</h2>
        <span className="muted">
          {e.anomaly ? 'model used for the judgment' : 'model of the function'}
        </span>
        <span className="push" />
        {model && <ExportFigure title={`Call times of ${bare(e.function)}`} />}
      </header>
      {model ? (
        <div className="evidence-why-body">
          {model.warming && (
            <Notice level="unknown">
              Warming up: {count(model.samples)} samples are too few to judge reliably.
            </Notice>
          )}
          <Histogram model={model} value={e.judged_us} />
          {model.counts.length === 0 && (
            <p className="muted">No histogram: the model has only mean and deviation.</p>
          )}
          <ModelFacts model={model} />
        </div>
      ) : (
        <Empty title="No model stored with this execution.">
          <p>
            Records of other versions may lack it. See the function for the model of the whole run.
          </p>
        </Empty>
      )}
    </section>
  );
}

/** The figures of a model. */
export function ModelFacts({ model }: { model: Model }) {
  return (
    <dl className="model-facts">
      <div>
        <dt>usual</dt>
        <dd>{usualWords(model)}</dd>
      </div>
      <div>
        <dt>flagged</dt>
        <dd>{flaggedWords(model)}</dd>
      </div>
      <div>
        <dt>samples</dt>
        <dd>{count(model.samples)}</dd>
      </div>
      <div>
        <dt>detector</dt>
        <dd title={algorithmWords[model.algorithm]}>{model.algorithm}</dd>
      </div>
    </dl>
  );
}

/** The difference from a normal execution. */
export function Normal({ evidence: e }: { evidence: Evidence }) {
  const href = useHref();
  const { twin } = e;
  const apart = difference(e);
  return (
    <section className="panel" aria-labelledby="normal-title">
      <header className="panel-head">
        <h2 id="normal-title">Normal execution</h2>
        <span className="push" />
        {twin && (
          <a
            href={href({ event: eventPath(e.program, twin.event_id), query: { w: '', call: '' } })}
          >
            evidence
          </a>
        )}
      </header>
      {!twin || !apart ? (
        <NoTwin evidence={e} />
      ) : (
        <div className="evidence-normal">
          <p>{apart.sentence}</p>
          {!twin.same_path && (
            <Notice level="unknown">
              The normal execution has another call path: none with the same path was kept.
            </Notice>
          )}
          <Parts parts={apart.parts} own={e.function} />
          <p className="muted">
            The normal execution ran on rank {twin.rank}
            {twin.host === '' ? '' : ` (${twin.host})`},{' '}
            {twin.at_s < e.at_s
              ? `${duration((e.at_s - twin.at_s) * 1e6)} earlier`
              : `${duration((twin.at_s - e.at_s) * 1e6)} later`}
            . The timeline shows it on the same scale.
          </p>
        </div>
      )}
    </section>
  );
}

function NoTwin({ evidence: e }: { evidence: Evidence }) {
  if (!e.anomaly) return <Empty title="This execution is normal: no comparison needed." />;
  return (
    <Empty title="No normal execution kept.">
      <p>
        Only some anomalies come with a normal execution. Rarely called functions may have none.
      </p>
    </Empty>
  );
}

const mostParts = 6;

/** The time of each part in both executions, as bars on one scale. */
function Parts({ parts, own }: { parts: readonly Part[]; own: string }) {
  const most = Math.max(...parts.map((p) => Math.max(p.here, p.normal)), 1);
  const left = parts.length - mostParts;
  return (
    <PlainTable name="difference from normal" title="Difference from a normal execution">
      <table className="evidence-parts">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col">Normal</th>
            <th scope="col">Anomaly</th>
            <th scope="col">Difference</th>
            <th scope="col">
              <span className="visually-hidden">Bars of both executions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {parts.slice(0, mostParts).map((p) => (
            <tr key={p.name}>
              <th scope="row">
                {p.name === '' ? (
                  <>
                    <FunctionName name={own} most={36} /> itself
                  </>
                ) : p.name === notShown ? (
                  'calls not shown'
                ) : (
                  <>
                    <FunctionName name={p.name} most={36} />
                    {(p.callsHere > 1 || p.callsNormal > 1) && (
                      <span className="muted">
                        {' '}
                        {p.callsNormal}× / {p.callsHere}×
                      </span>
                    )}
                  </>
                )}
              </th>
              <td>{duration(p.normal)}</td>
              <td>{duration(p.here)}</td>
              <td className={p.here > p.normal ? 'more' : ''}>
                {p.here > p.normal ? '+' : ''}
                {duration(p.here - p.normal)}
              </td>
              <td className="bars" aria-hidden="true">
                <span className="normal" style={{ width: `${(p.normal / most) * 100}%` }} />
                <span className="here" style={{ width: `${(p.here / most) * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
        {left > 0 && (
          <tfoot>
            <tr>
              <td colSpan={5} className="muted">
                and {count(left)} parts with smaller differences
              </td>
            </tr>
          </tfoot>
        )}
      </table>
    </PlainTable>
  );
}
