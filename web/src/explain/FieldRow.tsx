import type { ExplainBar, ExplainField } from '../api/index.ts';
import { percent } from '../format/index.ts';
import { useHref, type Changes } from '../route/index.ts';
import { GroupBy, Groups } from './Groups.tsx';
import { onlyThese, withoutThese, writeSelection, type Selection } from './selection.ts';

const measure =
  'Strength, in bits: 0 if the values are as frequent elsewhere, 1 if all selected executions have them and no others. Chance: probability of such a difference at random, corrected for the number of fields.';

/** A field with the values that distinguish the selection, their strength and actions. */
export function FieldRow({ field, selection }: { field: ExplainField; selection: Selection }) {
  const weak = field.role === 'chosen' || !field.notable;
  return (
    <li className={`explain-field ${weak ? 'is-weak' : ''}`}>
      <div className="explain-head">
        <h3 title={field.name}>{field.name}</h3>
        <span className="explain-values" title={field.values}>
          {field.values}
        </span>
        <span className="push" />
        <span className="explain-bits" title={`${field.bits.toFixed(2)} bits. ${measure}`}>
          <span className="explain-meter" aria-hidden="true">
            <span style={{ width: `${100 * field.bits}%` }} />
          </span>
        </span>
      </div>
      <Bars field={field} />
      <p className="explain-support" title={measure}>
        {field.support}
        {field.role === 'chosen' && '; part of the selection'}
      </p>
      <Actions field={field} selection={selection} />
      {field.terms.length > 0 && selection.by === field.key && <Groups selection={selection} />}
    </li>
  );
}

/** Shares of both sides: rows for names, columns for quantities. */
function Bars({ field }: { field: ExplainField }) {
  if (field.bars.length === 0) return null;
  const most = Math.max(0.01, ...field.bars.map((b) => Math.max(b.share, b.baseline_share)));
  const label = `${field.name}: ${field.bars.map((b) => barWords(b)).join('; ')}`;
  const ordered = ['bytes', 'node-state', 'counter', 'time', 'step'].includes(field.kind);
  if (ordered) {
    return (
      <div className="explain-columns" role="img" aria-label={label}>
        {field.bars.map((b, i) => (
          <span key={i} className={b.telling ? 'is-telling' : ''} title={`from ${barWords(b)}`}>
            <i className="bar-here" style={{ height: `${(100 * b.share) / most}%` }} />
            <i className="bar-rest" style={{ height: `${(100 * b.baseline_share) / most}%` }} />
          </span>
        ))}
        <small className="axis-low">{field.bars[0]?.label}</small>
        <small className="axis-high">{field.bars.at(-1)?.label}</small>
      </div>
    );
  }
  return (
    <div className="explain-rows" role="img" aria-label={label}>
      {field.bars.map((b) => (
        <div key={b.label} className={b.telling ? 'is-telling' : ''} title={barWords(b)}>
          <span className="bar-label">{b.label}</span>
          <span className="bar-pair">
            <i className="bar-here" style={{ width: `${(100 * b.share) / most}%` }} />
            <i className="bar-rest" style={{ width: `${(100 * b.baseline_share) / most}%` }} />
          </span>
        </div>
      ))}
    </div>
  );
}

function barWords(b: ExplainBar): string {
  return `${b.label}: ${percent(100 * b.share)} here, ${percent(100 * b.baseline_share)} elsewhere`;
}

/** Actions of a field: filter by its values or group by it. */
function Actions({ field, selection }: { field: ExplainField; selection: Selection }) {
  const href = useHref();
  const findings = findingsOf(field);
  const to = (s: Selection) => href({ query: { explain: writeSelection(s) } });
  if (field.terms.length === 0) return null;
  return (
    <div className="explain-actions">
      <Action
        text="Only these"
        title={`keep only executions with ${field.name} ${field.values}`}
        none={field.with === field.of ? 'all executions match' : ''}
        href={to(onlyThese(selection, field.key, field.terms))}
      />
      <Action
        text="Without these"
        title={`exclude executions with ${field.name} ${field.values}, here and elsewhere`}
        none={field.with === field.of ? 'would exclude all executions' : ''}
        href={to(withoutThese(selection, field.terms))}
      />
      <GroupBy field={field.key} name={field.name} selection={selection} />
      {findings && (
        <a
          className="button quiet"
          title="close the drawer and filter the page"
          href={href({ view: 'findings', query: { explain: '', ...findings } })}
        >
          Show findings
        </a>
      )}
    </div>
  );
}

/** A link, or a disabled button with the reason. */
function Action(props: { text: string; title: string; none: string; href: string }) {
  if (props.none !== '')
    return (
      <button type="button" className="button" disabled title={props.none}>
        {props.text}
      </button>
    );
  return (
    <a className="button" title={props.title} href={props.href}>
      {props.text}
    </a>
  );
}

/** Page filters for the values of a field; undefined if the address has no such parameter. */
function findingsOf(field: ExplainField): Changes | undefined {
  if (field.kind === 'host' && field.labels.length === 1) return { host: field.labels[0] };
  if (field.kind === 'rank')
    return {
      rank:
        field.from === undefined
          ? field.numbers.join(',')
          : `${field.from}-${field.to ?? field.from}`,
    };
  if (field.kind === 'time' && field.from !== undefined)
    return { t0: tidy(field.from), t1: field.to === undefined ? '' : tidy(field.to) };
  return undefined;
}

const tidy = (s: number) => Number(s.toFixed(3));
