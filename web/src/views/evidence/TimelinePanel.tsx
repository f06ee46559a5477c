import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useRunQuery, type Evidence } from '../../api/index.ts';
import { groups, groupVar, groupWords } from '../../color/index.ts';
import { useKeys } from '../../keys/index.ts';
import { eventPath, go, text, useHref, useParam } from '../../route/index.ts';
import {
  boundsOf,
  boxOf,
  clampSpan,
  firstSpan,
  fit,
  layout,
  pan,
  readSpan,
  sameSpan,
  Timeline,
  writeSpan,
  zoom,
  type Layout,
  type Section,
  type Span,
} from '../../timeline/index.ts';
import { CallsTable, SelectedCall } from './Calls.tsx';
import { companionsOf, sectionsOf, type Companion } from './sections.ts';

const noText = text('');

/** The records of those who have to do with the execution; what cannot be had is left out. */
function useCompanions(e: Evidence) {
  const [first, second] = useMemo(() => companionsOf(e), [e]);
  const a = useCompanion(first);
  const b = useCompanion(second);
  return useMemo(() => [a, b].filter((c) => c !== undefined), [a, b]);
}

function useCompanion(c: Companion | undefined) {
  const { data } = useRunQuery<Evidence>(
    c && `events/${encodeURIComponent(c.event)}/evidence`,
    c ? { program: c.program } : {},
  );
  return useMemo(() => (c && data ? { role: c.role, evidence: data } : undefined), [c, data]);
}

/** What is seen of the time. The address has it, a moment after the last change. */
function useSpanState(made: Layout, bounds: Span): [Span, (span: Span | undefined) => void, Span] {
  const [kept, keep] = useParam('w', noText);
  const [span, setSpan] = useState(() => readSpan(kept));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const first = useMemo(() => clampSpan(firstSpan(made, 'this'), bounds), [made, bounds]);
  const set = useCallback(
    (next: Span | undefined) => {
      setSpan(next);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => keep(next ? writeSpan(next) : ''), 300);
    },
    [keep],
  );
  return [span ? clampSpan(span, bounds) : first, set, first];
}

/** The calls around the execution over time, with those of others and of a normal one below. */
export function TimelinePanel({ evidence: e }: { evidence: Evidence }) {
  const href = useHref();
  const companions = useCompanions(e);
  const sections = useMemo(() => sectionsOf(e, companions), [e, companions]);
  const made = useMemo(() => layout(sections), [sections]);
  const bounds = useMemo(() => boundsOf(made), [made]);
  const [span, setSpan, first] = useSpanState(made, bounds);
  const [chosen, choose] = useParam('call', noText);
  const box = boxOf(made, chosen);
  const middle = (span.from + span.to) / 2;
  const fitChosen = () => {
    const to = box ?? made.boxes.find((b) => b.section === 'this' && b.call.self === true);
    const next = to ? fit(to.enter, to.exit, bounds) : first;
    setSpan(sameSpan(next, span) ? undefined : next);
  };
  const group = 'Timeline';
  useKeys([
    { key: 'w', label: 'closer', group, run: () => setSpan(zoom(span, 0.7, middle, bounds)) },
    {
      key: 's',
      label: 'further away',
      group,
      run: () => setSpan(zoom(span, 1.43, middle, bounds)),
    },
    { key: 'a', label: 'earlier', group, run: () => setSpan(pan(span, -0.2, bounds)) },
    { key: 'd', label: 'later', group, run: () => setSpan(pan(span, 0.2, bounds)) },
    { key: 'f', label: 'fit the chosen call; again: all', group, run: fitChosen },
  ]);
  useKeys(
    [{ key: 'Escape', label: 'choose no call', group, run: () => choose('') }],
    chosen !== '',
  );
  const open = (section: string) => {
    if (section === 'twin' && e.twin) {
      const to = eventPath(e.program, e.twin.event_id);
      return <a href={href({ event: to, query: { w: '', call: '' } })}>its evidence</a>;
    }
    if (!sections.some((s) => s.id === section)) return null;
    return <a href={href({ event: section, query: { w: '', call: '' } })}>its evidence</a>;
  };
  return (
    <section className="panel" aria-labelledby="timeline-title">
      <header className="panel-head">
        <h2 id="timeline-title">Timeline</h2>
        <Legend sections={sections} />
        <span className="push" />
        <span className="evidence-hint" aria-hidden="true">
          <kbd>w</kbd>
          <kbd>s</kbd> zoom <kbd>a</kbd>
          <kbd>d</kbd> move <kbd>f</kbd> fit · drag, Ctrl + wheel
        </span>
        <button
          type="button"
          className="button quiet"
          disabled={sameSpan(span, first)}
          onClick={() => setSpan(undefined)}
        >
          Whole window
        </button>
      </header>
      <Timeline
        made={made}
        bounds={bounds}
        span={span}
        onSpan={setSpan}
        selected={chosen}
        onSelect={choose}
        aside={open}
        label={timelineWords(e, sections)}
      />
      {box && <SelectedCall made={made} box={box} evidence={e} onFit={fitChosen} />}
      <CallsTable
        made={made}
        chosen={chosen}
        onChoose={choose}
        onOpen={(b) => {
          if (b.call.anomaly === true && b.section === 'this')
            go({ event: eventPath(e.program, b.call.event_id), query: { w: '', call: '' } });
        }}
      />
    </section>
  );
}

/** What the timeline shows, for those who cannot see it. */
function timelineWords(e: Evidence, sections: readonly Section[]): string {
  const calls = e.lanes.reduce((n, l) => n + l.calls.length, 0);
  const others = sections.filter((s) => s.id !== 'this' && s.id !== 'twin').length;
  const more = [
    others > 0 ? `${others} other ranks at the same time` : '',
    e.twin ? 'a normal execution below' : '',
  ].filter((t) => t !== '');
  return `Timeline of ${calls} calls around the execution${more.length > 0 ? `, with ${more.join(' and ')}` : ''}. Arrows go from call to call, w and s zoom, a and d move. The same calls are in a table below.`;
}

/** What colors and edges mean: those that occur. */
function Legend({ sections }: { sections: readonly Section[] }) {
  const calls = sections.flatMap((s) => s.lanes.flatMap((l) => l.calls));
  const there = groups.filter((g) => calls.some((c) => c.group === g));
  const flagged = calls.some((c) => c.self === true && c.anomaly === true);
  return (
    <ul className="evidence-legend" aria-label="What colors mean">
      {there.map((g) => (
        <li key={g}>
          <span className="dot" style={{ background: groupVar(g) }} /> {groupWords[g]}
        </li>
      ))}
      {calls.some((c) => c.anomaly === true) && (
        <li>
          <span className="dot anomaly" /> anomaly
        </li>
      )}
      <li>
        <span className={`dot self ${flagged ? '' : 'plain'}`} /> this execution
      </li>
      {calls.some((c) => c.open === true) && (
        <li title="It had not ended when the record was made: its right edge is torn">
          <span className="dot open" /> not ended
        </li>
      )}
    </ul>
  );
}
