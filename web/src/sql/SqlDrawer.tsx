import {
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
} from 'react';
import { flushSync } from 'react-dom';
import { asProblem, Problem, useLive } from '../api/index.ts';
import { count } from '../format/index.ts';
import { useKeys } from '../keys/index.ts';
import { choice, text, useParam } from '../route/index.ts';
import { copyText, ended, Menu, saveURL, useWidth, Waiting } from '../ui/index.ts';
import manual from '../../../docs/sql.md?url';
import { Answer } from './Shown.tsx';
import { askSQL, exportSQL, offsetOf, SqlProblem, type Result } from './ask.ts';
import { answerWords } from './Answer.tsx';
import { kinds } from './chart.ts';
import { nothing } from './open.ts';
import { Schema } from './Schema.tsx';
import { inserted, nameInSQL } from './schema.ts';
import { builtIn } from './snippets.ts';
import { asked, forget, remember, save, saved } from './storage.ts';
import { asCommand, asCurl } from './words.ts';
import './sql.css';

const limits = ['1000', '100', '10000', '100000'] as const;
const sqlParam = text('');
const limitParam = choice(...limits);
const kindParam = choice(...kinds);
const nameParam = text('');
const schemaParam = choice('auto', 'on', 'off');
const roomForSchema = 1000; // pixels of the drawer
const stacked = 900; // as in sql.css

/** The outcome of a statement. */
interface Outcome {
  key: string;
  result?: Result;
  problem?: Problem;
}

/** The SQL drawer below the view. The address holds the statement. */
export default function SqlDrawer() {
  const { run } = useLive();
  const [param, setParam] = useParam('sql', sqlParam);
  const [limit, setLimit] = useParam('sqllimit', limitParam);
  const [kind, setKind] = useParam('sqlchart', kindParam);
  const [x, setX] = useParam('sqlx', nameParam);
  const [y, setY] = useParam('sqly', nameParam);
  const [schemaChoice, setSchema] = useParam('sqlschema', schemaParam);
  const [box, width] = useWidth();
  const showSchema = schemaChoice === 'auto' ? width >= roomForSchema : schemaChoice === 'on';
  const statement = param === nothing ? '' : param;
  const [draft, setDraft] = useState(statement);
  const [shown, setShown] = useState(statement);
  if (shown !== statement) {
    // The address changed.
    setShown(statement);
    setDraft(statement);
  }
  const [times, setTimes] = useState(0); // run count of the same statement
  const [outcome, setOutcome] = useState<Outcome>();
  const [status, setStatus] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  const title = useId();
  const key = `${run} ${limit} ${times} ${statement}`;
  useEffect(() => area.current?.focus(), []);
  useEffect(() => {
    if (statement === '' || run === '') return;
    const stop = new AbortController();
    askSQL(run, statement, Number(limit), stop.signal).then(
      (result) => setOutcome({ key, result }),
      (err: unknown) => {
        if (!stop.signal.aborted) setOutcome({ key, problem: asProblem(err) });
      },
    );
    return () => stop.abort();
  }, [run, statement, limit, key]);
  const busy = statement !== '' && outcome?.key !== key;

  const ask = (sql: string) => {
    const trimmed = sql.trim();
    if (trimmed === '') return;
    remember(trimmed);
    if (schemaChoice === 'on' && width <= stacked) setSchema('auto'); // it covers the answer
    setDraft(trimmed);
    setShown(trimmed);
    setStatus('');
    if (trimmed === statement) setTimes((n) => n + 1);
    else setParam(trimmed);
  };
  const insert = (name: string) => {
    const at = area.current;
    if (!at) return;
    const next = inserted(draft, at.selectionStart, at.selectionEnd, nameInSQL(name));
    flushSync(() => setDraft(next.text));
    at.focus();
    at.setSelectionRange(next.at, next.at);
  };
  const close = () => setParam('');
  useKeys([
    { key: 'Escape', label: 'close', group: 'SQL', run: close },
    { key: '`', label: 'close SQL', group: 'SQL', run: close },
  ]);
  return (
    <section className="sql-drawer" aria-labelledby={title} ref={box}>
      <header className="sql-head">
        <h2 id={title}>SQL</h2>
        <button
          type="button"
          className="button"
          disabled={draft.trim() === ''}
          onClick={() => ask(draft)}
        >
          Run <kbd>Ctrl ↵</kbd>
        </button>
        <Choices run={run} draft={draft} onChoose={setDraft} onAsk={ask} />
        <button
          type="button"
          className="button quiet"
          aria-pressed={showSchema}
          onClick={() => setSchema(showSchema ? 'off' : 'on')}
        >
          Schema
        </button>
        <a className="sql-manual" href={manual} target="_blank" rel="noopener">
          Documentation
        </a>
        <span className="push" />
        <span role="status" className="muted status">
          {status !== '' ? status : !busy && outcome?.result ? answerWords(outcome.result) : ''}
        </span>
        <label>
          <span className="visually-hidden">Rows</span>
          <select
            className="field"
            value={limit}
            onChange={(e) => setLimit(e.target.value as (typeof limits)[number])}
          >
            {[...limits]
              .sort((a, b) => Number(a) - Number(b))
              .map((n) => (
                <option key={n} value={n}>
                  {count(Number(n))} rows
                </option>
              ))}
          </select>
        </label>
        <label>
          <span className="visually-hidden">Show as</span>
          <select
            className="field"
            value={kind}
            onChange={(e) => setKind(e.target.value as (typeof kinds)[number])}
          >
            {kinds.map((k) => (
              <option key={k} value={k}>
                {k === 'table' ? 'table' : `${k} chart`}
              </option>
            ))}
          </select>
        </label>
        <Leave run={run} sql={draft.trim()} limit={Number(limit)} setStatus={setStatus} />
        <button type="button" className="button quiet" onClick={close}>
          Close <kbd>Esc</kbd>
        </button>
      </header>
      <div className={showSchema ? 'sql-body with-schema' : 'sql-body'}>
        {showSchema && <Schema onName={insert} />}
        <Editor
          value={draft}
          onChange={setDraft}
          onAsk={() => ask(draft)}
          ref={area}
          wrong={!busy && outcome?.problem instanceof SqlProblem}
        />
        <div className="sql-answer">
          {statement === '' && <Start run={run} onAsk={ask} />}
          {busy && <Waiting label="running the query" />}
          {!busy && outcome?.problem && (
            <Wrong
              problem={outcome.problem}
              onGo={(line, column) => {
                const at = offsetOf(draft, line, column);
                area.current?.focus();
                area.current?.setSelectionRange(at, at);
              }}
            />
          )}
          {!busy && outcome?.result && statement !== '' && (
            <Answer result={outcome.result} kind={kind} x={x} y={y} onX={setX} onY={setY} />
          )}
        </div>
      </div>
    </section>
  );
}

/** What to do without a statement: the first examples, each run with a click. */
function Start(props: { run: string; onAsk: (sql: string) => void }) {
  const examples = useMemo(() => builtIn(props.run).slice(0, 6), [props.run]);
  return (
    <div className="sql-start">
      <p className="muted">Enter one read-only statement over all runs in the store, or run one:</p>
      <ul>
        {examples.map((s) => (
          <li key={s.name}>
            <button
              type="button"
              className="button"
              title={s.sql}
              onClick={() => props.onAsk(s.sql)}
            >
              {s.name}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The statement editor; Alt and arrows browse the history. */
function Editor({
  ref,
  value,
  wrong,
  onChange,
  onAsk,
}: {
  value: string;
  onChange: (sql: string) => void;
  onAsk: () => void;
  ref: RefObject<HTMLTextAreaElement | null>;
  wrong: boolean;
}) {
  const at = useRef(-1); // index in the history; -1 is the current text
  const keys = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      at.current = -1;
      onAsk();
    } else if (event.altKey && (event.key === 'ArrowUp' || event.key === 'ArrowDown')) {
      event.preventDefault();
      const list = asked();
      at.current = Math.min(
        Math.max(at.current + (event.key === 'ArrowUp' ? 1 : -1), -1),
        list.length - 1,
      );
      const sql = list[at.current];
      if (sql !== undefined) onChange(sql);
    }
  };
  return (
    <textarea
      ref={ref}
      className="field sql-text"
      aria-label="SQL statement"
      aria-invalid={wrong}
      title="Ctrl Enter runs; Alt ↑ and Alt ↓ browse the history"
      placeholder={
        'SELECT func, count(*) AS n, sum(lost_time) AS lost_us\nFROM anomalies\nGROUP BY func\nORDER BY lost_us DESC'
      }
      spellCheck={false}
      autoCapitalize="off"
      autoComplete="off"
      value={value}
      onChange={(e) => onChange(e.target.value)}
      onKeyDown={keys}
    />
  );
}

/** A statement error with its position. */
function Wrong(props: { problem: Problem; onGo: (line: number, column: number) => void }) {
  const { problem } = props;
  const line = problem instanceof SqlProblem ? problem.line : 0;
  const column = problem instanceof SqlProblem ? problem.column : 0;
  return (
    <div role="alert" className="sql-wrong">
      <pre>{problem.message}</pre>
      {problem.hint !== '' && <p>{ended(problem.hint)}</p>}
      {line > 0 && (
        <button type="button" className="button" onClick={() => props.onGo(line, column)}>
          Go to line {line}
          {column > 0 && `, column ${column}`}
        </button>
      )}
    </div>
  );
}

/** Examples, saved statements and history. */
function Choices(props: {
  run: string;
  draft: string;
  onChoose: (sql: string) => void;
  onAsk: (sql: string) => void;
}) {
  const examples = useMemo(() => builtIn(props.run), [props.run]);
  const [, redraw] = useState(0); // renders again after a save or removal
  const [name, setName] = useState('');
  const mine = saved();
  const before = asked();
  return (
    <div className="sql-choices">
      <Menu label="Examples">
        <div className="sql-list">
          {examples.map((s) => (
            <Item key={s.name} title={s.sql} onClick={() => props.onAsk(s.sql)}>
              {s.name}
            </Item>
          ))}
        </div>
      </Menu>
      <Menu label="Saved">
        <form
          className="sql-save"
          onSubmit={(e) => {
            e.preventDefault();
            if (name.trim() === '' || props.draft.trim() === '') return;
            save(name.trim(), props.draft.trim());
            setName('');
            redraw((n) => n + 1);
          }}
        >
          <input
            className="field"
            placeholder="Name"
            aria-label="Name of the statement"
            value={name}
            onChange={(e) => setName(e.target.value)}
          />
          <button type="submit" className="button" disabled={props.draft.trim() === ''}>
            Save
          </button>
        </form>
        <div className="sql-list">
          {mine.length === 0 && <p className="muted">No saved statements.</p>}
          {mine.map((s) => (
            <div key={s.name} className="sql-saved">
              <Item title={s.sql} onClick={() => props.onAsk(s.sql)}>
                {s.name}
              </Item>
              <button
                type="button"
                className="button quiet"
                aria-label={`Remove ${s.name}`}
                onClick={() => {
                  forget(s.name);
                  redraw((n) => n + 1);
                }}
              >
                ✕
              </button>
            </div>
          ))}
        </div>
      </Menu>
      <Menu label="History">
        <div className="sql-list">
          {before.length === 0 && <p className="muted">No history.</p>}
          {before.map((sql) => (
            <Item key={sql} className="sql-before" title={sql} onClick={() => props.onChoose(sql)}>
              {sql.replace(/\s+/g, ' ').slice(0, 120)}
            </Item>
          ))}
        </div>
      </Menu>
    </div>
  );
}

/** A menu item that closes the menu. */
function Item(props: {
  title?: string;
  className?: string;
  disabled?: boolean;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      className={`menu-item ${props.className ?? ''}`.trim()}
      title={props.title}
      disabled={props.disabled}
      onClick={(event) => {
        event.currentTarget.closest('details')?.removeAttribute('open');
        props.onClick();
      }}
    >
      {props.children}
    </button>
  );
}

/** Copies the statement or exports the result for other tools. */
function Leave(props: {
  run: string;
  sql: string;
  limit: number;
  setStatus: (text: string) => void;
}) {
  const { run, sql, limit, setStatus } = props;
  const place = useLive().overview?.place;
  const copy = async (what: string, then = '') => {
    setStatus(
      (await copyText(what)) ? `copied${then}` : 'copy failed: the browser blocks clipboard access',
    );
  };
  const keep = async (format: 'csv' | 'parquet') => {
    setStatus('exporting …');
    try {
      const { blob, rows, cut } = await exportSQL(run, sql, format);
      const url = URL.createObjectURL(blob);
      saveURL(url, `answer.${format}`);
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      setStatus(`${count(rows)} rows exported${cut ? ' (limit reached)' : ''}`);
    } catch (err) {
      const p = asProblem(err);
      setStatus(`export failed: ${p.message.split('\n')[0]}${p.hint === '' ? '' : `; ${p.hint}`}`);
    }
  };
  const none = sql === '';
  return (
    <>
      <Menu label="Copy as">
        <Item
          disabled={none}
          onClick={() =>
            void copy(
              asCommand(place, run, sql),
              place === undefined ? '; replace RUN with the run directory' : '',
            )
          }
        >
          Command line
        </Item>
        <Item
          disabled={none}
          onClick={() =>
            void copy(asCurl(document.baseURI, run, sql, limit), '; replace TOKEN with the token')
          }
        >
          curl
        </Item>
      </Menu>
      <Menu label="Export">
        <Item disabled={none} onClick={() => void keep('csv')}>
          CSV
        </Item>
        <Item disabled={none} onClick={() => void keep('parquet')}>
          Parquet
        </Item>
      </Menu>
    </>
  );
}
