import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useRunQuery, type Evidence } from '../../api/index.ts';
import { groups, groupVar, groupWords } from '../../color/index.ts';
import { bare } from '../../format/index.ts';
import { useKeys } from '../../keys/index.ts';
import { ExportFigure } from '../../ui/index.ts';
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

/** The records of related executions, without those that fail to load. */
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

/** The visible time span, saved to the address shortly after the last change. */
function useSpanState(
  placement: Layout,
  bounds: Span,
): [Span, (span: Span | undefined) => void, Span] {
  const [kept, keep] = useParam('w', noText);
  const [span, setSpan] = useState(() => readSpan(kept));
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const first = useMemo(() => clampSpan(firstSpan(placement, 'this'), bounds), [placement, bounds]);
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

/** The calls around the execution, with related executions and a normal one below. */
export function TimelinePanel({ evidence: e }: { evidence: Evidence }) {
  const href = useHref();
  const companions = useCompanions(e);
  const sections = useMemo(() => sectionsOf(e, companions), [e, companions]);
  const placement = useMemo(() => layout(sections), [sections]);
  const bounds = useMemo(() => boundsOf(placement), [placement]);
  const [span, setSpan, first] = useSpanState(placement, bounds);
  const [chosen, choose] = useParam('call', noText);
  const box = boxOf(placement, chosen);
  const middle = (span.from + span.to) / 2;
  const fitChosen = () => {
    const to = box ?? placement.boxes.find((b) => b.section === 'this' && b.call.self === true);
    const next = to ? fit(to.enter, to.exit, bounds) : first;
    setSpan(sameSpan(next, span) ? undefined : next);
  };
  const group = 'Timeline';
  useKeys([
    { key: 'w', label: 'zoom in', group, run: () => setSpan(zoom(span, 0.7, middle, bounds)) },
    {
      key: 's',
      label: 'zoom out',
      group,
      run: () => setSpan(zoom(span, 1.43, middle, bounds)),
    },
    { key: 'a', label: 'move left', group, run: () => setSpan(pan(span, -0.2, bounds)) },
    { key: 'd', label: 'move right', group, run: () => setSpan(pan(span, 0.2, bounds)) },
    { key: 'f', label: 'fit the selected call; again: fit all', group, run: fitChosen },
  ]);
  useKeys(
    [{ key: 'Escape', label: 'clear the selection', group, run: () => choose('') }],
    chosen !== '',
  );
  const open = (section: string) => {
    if (section === 'twin' && e.twin) {
      const to = eventPath(e.program, e.twin.event_id);
      return <a href={href({ event: to, query: { w: '', call: '' } })}>evidence</a>;
    }
    if (!sections.some((s) => s.id === section)) return null;
    return <a href={href({ event: section, query: { w: '', call: '' } })}>evidence</a>;
  };
  return (
    <section className="panel" aria-labelledby="timeline-title" data-figure>
      <header className="panel-head">
        <h2 id="timeline-title">Timeline</h2>
        <Legend sections={sections} />
        <span className="push" />
        <span className="evidence-hint" aria-hidden="true" data-no-export>
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
        <ExportFigure title={`Calls around ${bare(e.function)} on rank ${e.rank}`} />
      </header>
      <Timeline
        placement={placement}
        bounds={bounds}
        span={span}
        onSpan={setSpan}
        selected={chosen}
        onSelect={choose}
        aside={open}
        label={timelineWords(e, sections)}
      />
      {box && <SelectedCall placement={placement} box={box} evidence={e} onFit={fitChosen} />}
      <CallsTable
        placement={placement}
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

/** Describes the timeline for screen readers. */
function timelineWords(e: Evidence, sections: readonly Section[]): string {
  const calls = e.lanes.reduce((n, l) => n + l.calls.length, 0);
  const others = sections.filter((s) => s.id !== 'this' && s.id !== 'twin').length;
  const more = [
    others > 0 ? `${others} other ranks at the same time` : '',
    e.twin ? 'a normal execution' : '',
  ].filter((t) => t !== '');
  return `Timeline of ${calls} calls around the execution${more.length > 0 ? `, with ${more.join(' and ')}` : ''}. Arrows move between calls, w and s zoom, a and d move. A table below lists the calls.`;
}

/** The legend of the colors in use. */
function Legend({ sections }: { sections: readonly Section[] }) {
  const calls = sections.flatMap((s) => s.lanes.flatMap((l) => l.calls));
  const there = groups.filter((g) => calls.some((c) => c.group === g));
  const flagged = calls.some((c) => c.self === true && c.anomaly === true);
  return (
    <ul className="evidence-legend" aria-label="Color legend">
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
        <li title="Still running when recorded; drawn with a torn right edge">
          <span className="dot open" /> not ended
        </li>
      )}
    </ul>
  );
}
