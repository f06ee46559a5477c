import { useLive, useRunQuery, type Explained } from '../api/index.ts';
import { clock, count, duration, elide, plural } from '../format/index.ts';
import { go, useRoute } from '../route/index.ts';
import { Drawer, Empty, ended, Failure, Waiting } from '../ui/index.ts';
import { Command } from './Command.tsx';
import { FieldRow } from './FieldRow.tsx';
import { functionField, Functions } from './Functions.tsx';
import { Groups } from './Groups.tsx';
import {
  readSelection,
  released,
  selectionParams,
  writeSelection,
  type Selection,
} from './selection.ts';
import './explain.css';

/** Closes the drawer by removing its selection from the address. */
export function closeExplain(): void {
  go({ query: { explain: '' } });
}

/** The drawer, if the address has a selection to explain. */
export function ExplainDrawer() {
  const { query } = useRoute();
  const selection = readSelection(query.explain);
  if (!selection) return null;
  return (
    <Drawer title="Explanation" onClose={closeExplain}>
      <Explanation selection={selection} />
    </Drawer>
  );
}

/** Explains how a selection of anomalies differs from other executions. */
export function Explanation({ selection }: { selection: Selection }) {
  const result = useRunQuery<Explained>('explain', selectionParams(selection), {
    every: 10_000,
    keep: true,
  });
  const e = result.data;
  return (
    <div className="explain">
      <Chosen selection={selection} />
      <Narrowed selection={selection} />
      {!e && result.problem && <Failure problem={result.problem} retry={result.refresh} />}
      {!e && !result.problem && <Waiting label="comparing with other executions" lines={8} />}
      {e?.selected === 0 && (
        <Empty title="No anomalies in the selection.">
          <p>
            {narrowings(selection).length > 0
              ? 'Remove one of the conditions above.'
              : 'Select a larger box or a longer time.'}
          </p>
        </Empty>
      )}
      {e && e.selected > 0 && (
        <>
          <p className="explain-sentence">{ended(e.sentence)}</p>
          <p className="muted small">
            {e.reckoned && 'About '}
            {plural(e.selected, 'execution')}
            {e.looked > 0 && e.looked < e.selected && ` (${count(e.looked)} sampled)`} lost{' '}
            {duration(e.lost_us)}, compared with {plural(e.typical, 'typical execution')} and{' '}
            {plural(e.others, 'other anomaly', 'other anomalies')} of the same functions, and with
            all ranks, calls and readings if known.
          </p>
          {(e.functions.length > 1 || selection.by === functionField) && (
            <Functions functions={e.functions} selection={selection} />
          )}
          <p className="explain-legend small" aria-hidden="true">
            <i className="bar-here" /> here <i className="bar-rest" /> elsewhere
          </p>
          {selection.by !== undefined &&
            ![functionField, ...e.fields.map((f) => f.key)].includes(selection.by) && (
              <Groups selection={selection} />
            )}
          <ol className="explain-fields">
            {e.fields.map((f) => (
              <FieldRow key={`${f.kind} ${f.name}`} field={f} selection={selection} />
            ))}
          </ol>
          <Command text={e.command} />
        </>
      )}
    </div>
  );
}

/** The removable conditions of a selection. */
function narrowings(s: Selection): { text: string; without: Selection }[] {
  const of = (list: 'only' | 'without') =>
    (s[list] ?? []).map((term) => ({ text: `${list} ${term}`, without: released(s, list, term) }));
  const { lasso, ...rest } = s;
  return [
    ...(lasso === undefined ? [] : [{ text: 'inside the lasso', without: rest }]),
    ...of('only'),
    ...of('without'),
  ];
}

/** The conditions of the selection, each with a remove button. */
function Narrowed({ selection }: { selection: Selection }) {
  const list = narrowings(selection);
  if (list.length === 0) return null;
  return (
    <ul className="chips explain-chips" aria-label="Conditions">
      {list.map((n) => (
        <li key={n.text}>
          <button
            type="button"
            className="chip"
            title={n.text}
            aria-label={`${n.text}: remove`}
            onClick={() => go({ query: { explain: writeSelection(n.without) } })}
          >
            {elide(n.text, 64)} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Describes the selection. */
function Chosen({ selection: s }: { selection: Selection }) {
  const { overview } = useLive();
  const length = overview?.length_s ?? 0;
  const finding = overview?.findings.find((i) => i.key === s.finding);
  const words: string[] = [];
  if (s.finding !== undefined) words.push(finding ? `finding ${finding.finding}` : 'a finding');
  if (s.func !== undefined) words.push(elide(s.func, 40));
  if (s.kind !== undefined) words.push(s.kind);
  if (s.host !== undefined) words.push(`host ${elide(s.host, 24)}`);
  if (s.rank !== undefined) words.push(`ranks ${elide(s.rank, 24)}`);
  if (s.program !== undefined && (overview?.programs.length ?? 0) > 1)
    words.push(`program ${s.program}`);
  if (s.from !== undefined || s.to !== undefined)
    words.push(
      `${clock(Number(s.from ?? 0), length)} to ${s.to === undefined ? 'the end' : clock(Number(s.to), length)}`,
    );
  if (s.min_us !== undefined || s.max_us !== undefined)
    words.push(
      `${duration(Number(s.min_us ?? 0))} to ${s.max_us === undefined ? 'any length' : duration(Number(s.max_us))}`,
    );
  if (s.lasso !== undefined) words.push('inside the lasso');
  return (
    <p className="explain-chosen">
      Anomalies of {words.length === 0 ? 'the whole run' : words.join(' · ')}, and other executions
      of the same functions
    </p>
  );
}
