import { useMemo, useState, type ReactNode } from 'react';
import type { Arrow, Counter, Evidence, Field, GPU } from '../../api/index.ts';
import { bytes, count, plural, short } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { after } from '../../timeline/index.ts';
import { FunctionName, Table, type Column } from '../../ui/index.ts';
import { sizeWords } from './markdown.ts';
import { RawRecord } from './RawRecord.tsx';

/** The record's host, counters, messages, GPU data, metadata and raw form. */
export function Context({ evidence: e }: { evidence: Evidence }) {
  const messages = e.arrows.filter((a) => a.kind !== 'launch');
  return (
    <section className="panel" aria-labelledby="context-title">
      <header className="panel-head">
        <h2 id="context-title">Context</h2>
      </header>
      <div className="context">
        {e.gpu && <GPUPart gpu={e.gpu} />}
        <HostPart evidence={e} />
        {e.counters.length > 0 && <CounterPart counters={e.counters} />}
        {messages.length > 0 && <MessagePart messages={messages} twin={e.twin?.arrows} />}
        <MetadataPart rank={e.rank} fields={e.metadata} />
      </div>
      <RawRecord record={e.record} name={`${e.program}-${e.event_id}`} />
    </section>
  );
}

function Part(props: { title: ReactNode; children: ReactNode; wide?: boolean }) {
  return (
    <div className={props.wide === true ? 'context-part wide' : 'context-part'}>
      <h3>{props.title}</h3>
      {props.children}
    </div>
  );
}

/** GPU device, stream and launching call. */
function GPUPart({ gpu }: { gpu: GPU }) {
  const number = (n: number) => (n < 0 ? '–' : String(n));
  return (
    <Part title="GPU">
      <dl className="context-fields">
        <div>
          <dt>device</dt>
          <dd>{number(gpu.device)}</dd>
        </div>
        <div>
          <dt>context</dt>
          <dd>{number(gpu.context)}</dd>
        </div>
        <div>
          <dt>stream</dt>
          <dd>{number(gpu.stream)}</dd>
        </div>
        {gpu.parent !== undefined && gpu.parent !== '' && (
          <div>
            <dt>launched by</dt>
            <dd>event {gpu.parent}</dd>
          </div>
        )}
      </dl>
      {gpu.problem !== undefined && gpu.problem !== '' && (
        <p className="muted">Launching call unknown: {gpu.problem}.</p>
      )}
      {gpu.stack.length > 0 && (
        <ol className="context-stack" aria-label="Call path of the launch">
          {gpu.stack.map((f, i) => (
            <li key={i} style={{ paddingLeft: Math.min(i, 12) * 10 }}>
              <FunctionName name={f} />
            </li>
          ))}
        </ol>
      )}
    </Part>
  );
}

const fewFields = 12;

/** The host and the state of the node. */
function HostPart({ evidence: e }: { evidence: Evidence }) {
  const href = useHref();
  const [all, setAll] = useState(false);
  // Zero values come last.
  const state = useMemo(
    () => [...e.node_state].sort((a, b) => Number(isZero(a)) - Number(isZero(b))),
    [e.node_state],
  );
  const shown = all ? state : state.slice(0, fewFields);
  return (
    <Part
      title={
        e.host === '' ? (
          'Host'
        ) : (
          <>
            Host <a href={href({ view: 'findings', query: { host: e.host } })}>{e.host}</a>
          </>
        )
      }
    >
      {state.length === 0 ? (
        <p className="muted">Node state not recorded. TAU records it with its monitoring plugin.</p>
      ) : (
        <dl className="context-fields">
          {shown.map((f, i) => (
            <div key={i}>
              <dt title={f.name}>{f.name}</dt>
              <dd>{plainNumber(f.value)}</dd>
            </div>
          ))}
        </dl>
      )}
      {state.length > fewFields && (
        <button type="button" className="button quiet" onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show all ${state.length}`}
        </button>
      )}
    </Part>
  );
}

function isZero(f: Field): boolean {
  return /^0(\.0*)?$/.test(f.value.trim());
}

/** Groups the digits of numbers; returns other text unchanged. */
function plainNumber(text: string): string {
  return /^\d{5,15}$/.test(text) ? count(Number(text)) : text;
}

/** Deviation of a counter from its mean in standard deviations; undefined if unknown. */
export function deviation(c: Counter): number | undefined {
  if (c.mean === undefined || c.stddev === undefined || c.stddev <= 0) return undefined;
  return (c.value - c.mean) / c.stddev;
}

const counterColumns: Column<Counter>[] = [
  { id: 'counter', header: 'Counter', grow: true, value: (c) => c.name },
  {
    id: 'at',
    header: 'At',
    title: 'Since the entry of the execution',
    align: 'right',
    unit: 'us',
    value: (c) => c.at_us,
    cell: (c) => after(c.at_us),
  },
  {
    id: 'value',
    header: 'Value',
    align: 'right',
    value: (c) => c.value,
    cell: (c) => <span title={String(c.value)}>{short(c.value)}</span>,
  },
  {
    id: 'mean',
    header: 'Usual',
    title: 'Mean over all ranks ± standard deviation',
    align: 'right',
    value: (c) => c.mean,
    cell: (c) =>
      c.mean === undefined ? (
        <span title="Available when the run ends">–</span>
      ) : (
        `${short(c.mean)} ± ${short(c.stddev)}`
      ),
  },
  {
    id: 'away',
    header: 'Deviation',
    title: 'In standard deviations (σ); over 3 is unusual',
    align: 'right',
    value: (c) => {
      const d = deviation(c);
      return d === undefined ? undefined : Math.abs(d);
    },
    cell: (c) => {
      const d = deviation(c);
      if (d === undefined) return '–';
      return (
        <span className={Math.abs(d) > 3 ? 'evidence-flag' : ''}>
          {d > 0 ? '+' : '−'}
          {Math.abs(d).toFixed(1)} σ
        </span>
      );
    },
  },
];

function CounterPart({ counters }: { counters: readonly Counter[] }) {
  return (
    <Part title={plural(counters.length, 'counter')}>
      <div className="evidence-table small">
        <Table<Counter>
          name="evidence-counters"
          label="Counters read during the execution"
          columns={counterColumns}
          rows={counters}
          rowKey={(c) => `${c.name} ${c.at_us} ${c.value}`}
        />
      </div>
    </Part>
  );
}

const messageColumns: Column<Arrow>[] = [
  { id: 'kind', header: 'Kind', value: (a) => a.kind },
  { id: 'partner', header: 'Partner', align: 'right', value: (a) => a.partner },
  {
    id: 'bytes',
    header: 'Size',
    align: 'right',
    value: (a) => a.bytes,
    cell: (a) => bytes(a.bytes),
  },
  { id: 'tag', header: 'Tag', align: 'right', value: (a) => a.tag ?? 0 },
  {
    id: 'at',
    header: 'At',
    title: 'Since the entry of the execution',
    align: 'right',
    unit: 'us',
    value: (a) => a.from_us,
    cell: (a) => after(a.from_us),
  },
];

/** Summarizes messages and their sizes. */
function messageWords(messages: readonly Arrow[]): string {
  const partners = new Set(messages.map((a) => a.partner)).size;
  return `${plural(messages.length, 'message')}, ${sizeWords(messages)}, with ${plural(partners, 'rank')}`;
}

function MessagePart(props: { messages: readonly Arrow[]; twin: readonly Arrow[] | undefined }) {
  const normal = props.twin?.filter((a) => a.kind !== 'launch');
  return (
    <Part title="Messages">
      <p className="muted">
        {messageWords(props.messages)}.
        {normal !== undefined &&
          ` Normal execution: ${normal.length === 0 ? 'none' : messageWords(normal)}.`}
      </p>
      <div className="evidence-table small">
        <Table<Arrow>
          name="evidence-messages"
          label="Messages around the execution"
          columns={messageColumns}
          rows={props.messages}
          rowKey={(a) => `${a.kind} ${a.partner} ${a.from_us} ${a.tag ?? 0} ${a.bytes ?? ''}`}
        />
      </div>
    </Part>
  );
}

const fieldColumns: Column<Field>[] = [
  { id: 'name', header: 'Name', value: (f) => f.name },
  {
    id: 'value',
    header: 'Value',
    grow: true,
    value: (f) => f.value,
    cell: (f) => <span title={f.value}>{f.value}</span>,
  },
];

function MetadataPart({ rank, fields }: { rank: number; fields: readonly Field[] }) {
  return (
    <Part title={`Metadata of rank ${rank}`} wide>
      {fields.length === 0 ? (
        <p className="muted">No metadata of this rank.</p>
      ) : (
        <div className="evidence-table small">
          <Table<Field>
            name="evidence-metadata"
            label={`Metadata of rank ${rank}`}
            columns={fieldColumns}
            rows={fields}
            rowKey={(f) => `${f.name}\u0001${f.value}`}
          />
        </div>
      )}
    </Part>
  );
}
