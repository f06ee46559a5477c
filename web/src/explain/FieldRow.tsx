import type { ExplainBar, ExplainField } from '../api/index.ts';
import { percent } from '../format/index.ts';
import { useHref, type Changes } from '../route/index.ts';
import { GroupBy, Groups } from './Groups.tsx';
import { onlyThese, withoutThese, writeSelection, type Selection } from './selection.ts';

const measure =
  'Bits: how much the values of this field tell about whether an execution is one of these: 0, there are as many here as elsewhere; 1, all here have them and none elsewhere. Chance: how likely such a difference is without a reason, whichever field shows it.';

/** A field: the values that tell the selection from the rest, how well, and what to do with it. */
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
        <span className="explain-bits" title={measure}>
          <span className="explain-meter" aria-hidden="true">
            <span style={{ width: `${100 * field.bits}%` }} />
          </span>
          {field.bits.toFixed(2)} bits
        </span>
      </div>
      <Bars field={field} />
      <p className="explain-support" title={measure}>
        {field.support}
        {field.role === 'chosen' && '; the selection was made by it'}
        {field.role !== 'chosen' && !field.notable && '; that may be chance'}
      </p>
      <Actions field={field} selection={selection} />
      {field.terms.length > 0 && selection.by === field.key && <Groups selection={selection} />}
    </li>
  );
}

/** Shares of both sides: rows for names, columns for amounts and times. */
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

/** What can be done with a field: narrow the selection by its values, or break it down. */
function Actions({ field, selection }: { field: ExplainField; selection: Selection }) {
  const href = useHref();
  const issues = issuesOf(field);
  const to = (s: Selection) => href({ query: { explain: writeSelection(s) } });
  if (field.terms.length === 0) return null;
  return (
    <div className="explain-actions">
      <Action
        text="Only these"
        title={`explain only those with ${field.name} ${field.values}`}
        none={field.with === field.of ? 'all of them have it' : ''}
        href={to(onlyThese(selection, field.key, field.terms))}
      />
      <Action
        text="Without these"
        title={`leave out what has ${field.name} ${field.values}, here and elsewhere`}
        none={field.with === field.of ? 'all of them have it: nothing would be left' : ''}
        href={to(withoutThese(selection, field.terms))}
      />
      <GroupBy field={field.key} name={field.name} selection={selection} />
      {issues && (
        <a
          className="button quiet"
          title="leave the drawer and narrow the page to it"
          href={href({ view: 'issues', query: { explain: '', ...issues } })}
        >
          Show issues
        </a>
      )}
    </div>
  );
}

/** A link, or the reason why it leads nowhere. */
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

/** What narrows the whole page to the values of a field, where the address has a parameter for it. */
function issuesOf(field: ExplainField): Changes | undefined {
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
