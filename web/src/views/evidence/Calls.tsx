import { useMemo, useState } from 'react';
import type { Evidence } from '../../api/index.ts';
import { duration, plural, source } from '../../format/index.ts';
import { eventPath, useHref } from '../../route/index.ts';
import { after, boxKey, ownTime, selfWords, type Box, type Layout } from '../../timeline/index.ts';
import { FunctionName, Table, type Column } from '../../ui/index.ts';

/** Details of the selected call. */
export function SelectedCall(props: {
  placement: Layout;
  box: Box;
  evidence: Evidence;
  onFit: () => void;
}) {
  const { placement, box, evidence: e } = props;
  const { call } = box;
  const href = useHref();
  const place = source(call.function);
  const open = call.open === true;
  const own = call.self === true && box.section === 'this';
  const linked = call.anomaly === true && !own && box.section !== 'twin';
  return (
    <div className="evidence-call" role="status">
      <strong>
        <FunctionName name={call.label ?? call.function} most={90} />
      </strong>
      {place !== '' && <span className="muted">{place}</span>}
      <span>
        {open ? 'at least ' : ''}
        {duration(box.exit - box.enter)}
      </span>
      {!open && (
        <span title="Own time, without the callees shown">
          {duration(ownTime(placement, box))} itself
        </span>
      )}
      <span>entered {after(box.enter)}</span>
      <span className="muted">{placement.tracks[box.track]?.name}</span>
      {open && <span className="muted">not ended</span>}
      {call.anomaly === true && <span className="evidence-flag">anomaly</span>}
      <span className="push" />
      {linked && (
        <a
          href={href({
            event: eventPath(programOf(box, e), call.event_id),
            query: { w: '', call: '' },
          })}
        >
          evidence
        </a>
      )}
      <a href={href({ view: 'functions', query: { q: call.function } })}>function</a>
      <button type="button" className="button quiet" onClick={props.onFit}>
        Fit <kbd>f</kbd>
      </button>
    </div>
  );
}

/** The program of a call; other sections may be of another program. */
function programOf(box: Box, e: Evidence): number {
  const m = /^(\d+):/.exec(box.section);
  return m ? Number(m[1]) : e.program;
}

function notes(box: Box): string {
  const { call } = box;
  return [
    call.self === true ? selfWords(box) : '',
    call.anomaly === true ? 'anomaly' : '',
    call.open === true ? 'not ended' : '',
  ]
    .filter((t) => t !== '')
    .join(', ');
}

function callColumns(placement: Layout): Column<Box>[] {
  return [
    {
      id: 'function',
      header: 'Function',
      grow: true,
      value: (b) => b.call.function,
      cell: (b) => (
        <span style={{ paddingLeft: Math.min(b.call.depth, 20) * 12 }}>
          <FunctionName name={b.call.label ?? b.call.function} most={70} />
        </span>
      ),
    },
    { id: 'where', header: 'Where', value: (b) => placement.tracks[b.track]?.name },
    { id: 'depth', header: 'Depth', align: 'right', hidden: true, value: (b) => b.call.depth },
    {
      id: 'entered',
      header: 'Entered',
      title: 'Since the entry of this execution',
      align: 'right',
      value: (b) => b.enter,
      cell: (b) => after(b.enter),
    },
    {
      id: 'took',
      header: 'Took',
      title: 'Including callees',
      align: 'right',
      value: (b) => b.exit - b.enter,
      cell: (b) => (b.call.open === true ? '≥ ' : '') + duration(b.exit - b.enter),
    },
    {
      id: 'itself',
      header: 'Own time',
      title: 'Own time, without the callees shown',
      align: 'right',
      value: (b) => (b.call.open === true ? undefined : ownTime(placement, b)),
      cell: (b) => (b.call.open === true ? '–' : duration(ownTime(placement, b))),
    },
    { id: 'notes', header: 'Notes', value: notes },
    { id: 'event', header: 'Event', hidden: true, value: (b) => b.call.event_id },
  ];
}

/** The timeline as a table, for screen readers and copying. */
export function CallsTable(props: {
  placement: Layout;
  chosen: string;
  onChoose: (key: string) => void;
  onOpen: (box: Box) => void;
}) {
  const { placement } = props;
  const [open, setOpen] = useState(false);
  const columns = useMemo(() => callColumns(placement), [placement]);
  return (
    <details className="evidence-more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{plural(placement.boxes.length, 'call')} as a table</summary>
      {open && (
        <div className="evidence-table">
          <Table<Box>
            name="evidence-calls"
            label="Timeline calls"
            columns={columns}
            rows={placement.boxes}
            rowKey={boxKey}
            selected={props.chosen === '' ? undefined : props.chosen}
            onSelect={(b) => props.onChoose(boxKey(b))}
            onOpen={props.onOpen}
          />
        </div>
      )}
    </details>
  );
}
