import type { Evidence, Model } from '../../api/index.ts';
import { count, duration } from '../../format/index.ts';
import { algorithmWords, flaggedWords, Histogram, usualWords } from '../../histogram/index.ts';
import { eventPath, useHref } from '../../route/index.ts';
import { Empty, FunctionName, Notice } from '../../ui/index.ts';
import { difference, notShown, type Part } from './difference.ts';

/** Why it was flagged: how long the function usually takes, and this one. */
export function Why({ evidence: e }: { evidence: Evidence }) {
  const { model } = e;
  return (
    <section className="panel" aria-labelledby="why-title">
      <header className="panel-head">
        <h2 id="why-title">Why</h2>
        <span className="muted">
          {e.anomaly ? 'the model that it was judged by' : 'the model of its function'}
        </span>
      </header>
      {model ? (
        <div className="evidence-why-body">
          {model.warming && (
            <Notice level="unknown">
              Warming up: {count(model.samples)} samples are few for a sure judgment.
            </Notice>
          )}
          <Histogram model={model} value={e.judged_us} />
          {model.counts.length === 0 && (
            <p className="muted">
              The model keeps mean and deviation only, so there is no histogram.
            </p>
          )}
          <ModelFacts model={model} />
        </div>
      ) : (
        <Empty title="No model is stored with this execution.">
          <p>
            Records that another version wrote may have none. The page of the function has the model
            of the whole run.
          </p>
        </Empty>
      )}
    </section>
  );
}

/** The model in words. */
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

/** How it differs from a normal execution, which is drawn below the timeline. */
export function Normal({ evidence: e }: { evidence: Evidence }) {
  const href = useHref();
  const { twin } = e;
  const apart = difference(e);
  return (
    <section className="panel" aria-labelledby="normal-title">
      <header className="panel-head">
        <h2 id="normal-title">Same function, normal</h2>
        <span className="push" />
        {twin && (
          <a
            href={href({ event: eventPath(e.program, twin.event_id), query: { w: '', call: '' } })}
          >
            evidence of the normal one
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
              The normal one was reached by another call path: none with the same was kept.
            </Notice>
          )}
          <Parts parts={apart.parts} own={e.function} />
          <p className="muted">
            The normal one ran on rank {twin.rank}
            {twin.host === '' ? '' : ` (${twin.host})`},{' '}
            {twin.at_s < e.at_s
              ? `${duration((e.at_s - twin.at_s) * 1e6)} earlier`
              : `${duration((twin.at_s - e.at_s) * 1e6)} later`}
            . The timeline shows it below, on the same scale.
          </p>
        </div>
      )}
    </section>
  );
}

function NoTwin({ evidence: e }: { evidence: Evidence }) {
  if (!e.anomaly)
    return <Empty title="This one is normal itself: there is nothing to compare it with." />;
  return (
    <Empty title="No normal execution of this function was kept.">
      <p>
        One is kept with anomalies now and then, when a typical call ends soon after. Functions that
        are called rarely may have none.
      </p>
    </Empty>
  );
}

const mostParts = 6;

/** Where the time is, here and there, as bars on one scale. */
function Parts({ parts, own }: { parts: readonly Part[]; own: string }) {
  const most = Math.max(...parts.map((p) => Math.max(p.here, p.normal)), 1);
  const left = parts.length - mostParts;
  return (
    <table className="evidence-parts">
      <thead>
        <tr>
          <th scope="col">Part</th>
          <th scope="col">Normal</th>
          <th scope="col">This one</th>
          <th scope="col">Difference</th>
          <th scope="col">
            <span className="visually-hidden">Bars of the normal one and of this one</span>
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
              and {count(left)} parts that differ less
            </td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}
