import { useLive, type ExplainBar, type ExplainField } from '../api/index.ts';
import { percent } from '../format/index.ts';
import { useHref, type Changes } from '../route/index.ts';
import { otherRanks, type Selection } from './selection.ts';

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

/** What can be done with a field, as far as the address has a parameter for it. */
function Actions({ field, selection }: { field: ExplainField; selection: Selection }) {
  const { overview } = useLive();
  const href = useHref();
  const list: { text: string; title: string; query: Changes }[] = [];
  const gone = { explain: '' };
  const numbers = ranksOf(field);
  const ranks = overview?.figures.ranks ?? 0;
  if (field.kind === 'host' && field.labels.length === 1)
    list.push({
      text: 'Filter',
      title: `show only ${field.labels[0] ?? ''}`,
      query: { ...gone, host: field.labels[0] },
    });
  if (field.kind === 'rank' && numbers.length > 0) {
    list.push({
      text: 'Filter',
      title: 'show only these ranks',
      query: { ...gone, rank: numbers.join(',') },
    });
    const others = otherRanks(numbers, ranks);
    if (others !== '')
      list.push({
        text: 'Exclude',
        title: 'show only the other ranks',
        query: { ...gone, rank: others },
      });
  }
  if (field.kind === 'time' && field.from !== undefined)
    list.push({
      text: 'Filter',
      title: 'show only this time',
      query: { ...gone, t0: tidy(field.from), t1: field.to === undefined ? '' : tidy(field.to) },
    });
  if ((field.kind === 'host' || field.kind === 'rank') && selection.issue !== undefined)
    list.push({
      text: `Group by ${field.kind}`,
      title: `colour the executions of the issue by ${field.kind}`,
      query: { ...gone, sel: selection.issue, by: field.kind },
    });
  if (list.length === 0) return null;
  return (
    <div className="explain-actions">
      {list.map((a) => (
        <a
          key={a.text}
          className="button"
          title={a.title}
          href={href({ view: 'issues', query: a.query })}
        >
          {a.text}
        </a>
      ))}
    </div>
  );
}

const tidy = (s: number) => Number(s.toFixed(3));

/** The ranks of a field, those of a range too. */
function ranksOf(field: ExplainField): number[] {
  if (field.from === undefined || field.to === undefined) return field.numbers;
  const all: number[] = [];
  for (let r = field.from; r <= field.to && all.length < 1000; r++) all.push(r);
  return all;
}
