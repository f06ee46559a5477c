// Goes over all views: each table and each chart offers an export.
import { waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { ExplainDrawer } from '../explain/index.ts';
import SqlDrawer from '../sql/SqlDrawer.tsx';
import {
  comparables,
  comparison,
  flamePair,
  histogramPair,
  trend,
} from '../test/fixtures/compare.ts';
import { culpritEvidence, evidence } from '../test/fixtures/evidence.ts';
import { findingList, plot } from '../test/fixtures/findings.ts';
import { flame, functionDetail, functionTable } from '../test/fixtures/functions.ts';
import { breakdown, rankSteps } from '../test/fixtures/gpus.ts';
import { rankFunctions, rankTable, slowEvidence } from '../test/fixtures/ranks.ts';
import { heatmap, overview, status } from '../test/fixtures/run.ts';
import { timeline } from '../test/fixtures/timeline.ts';
import { renderIn, serve } from '../test/render.tsx';
import CompareView from '../views/compare/CompareView.tsx';
import EvidenceView from '../views/evidence/EvidenceView.tsx';
import FindingsView from '../views/findings/FindingsView.tsx';
import FunctionsView from '../views/functions/FunctionsView.tsx';
import GpusView from '../views/gpus/GpusView.tsx';
import OverviewView from '../views/overview/OverviewView.tsx';
import PipelineView from '../views/pipeline/PipelineView.tsx';
import RanksView from '../views/ranks/RanksView.tsx';
import TimelineView from '../views/timeline/TimelineView.tsx';

afterEach(() => vi.unstubAllGlobals());

const list = findingList(8);
const [first, second] = list.rows;
if (!first || !second) throw new Error('no findings');
const slow = { ...second, key: 'slow', kind: 'slow-peer' };

const group = (term: string) => ({ term, label: term, executions: 5, lost_us: 9 });

const replies = {
  heatmap: { body: heatmap(8) },
  findings: { body: { ...list, rows: [first, slow] } },
  [`findings/${first.key}/plot`]: { body: plot() },
  'findings/slow/plot': { body: { ...plot(), points: [] } },
  'findings/slow/slow-peer': { body: slowEvidence() },
  functions: { body: functionTable() },
  'functions/': { body: functionDetail() },
  flame: { body: flame() },
  counters: { body: { rows: [] } },
  events: { body: { rows: [] } },
  'events/4%3A19%3A1100/evidence': { body: evidence() },
  'events/3%3A19%3A1089/evidence': { body: culpritEvidence() },
  pipeline: { body: status(8) },
  ranks: { body: rankTable() },
  'ranks/functions': { body: rankFunctions() },
  timeline: { body: timeline() },
  breakdown: { body: breakdown(4) },
  'breakdown/steps': { body: rankSteps(2) },
  comparable: { body: comparables() },
  compare: { body: comparison() },
  'compare/histograms': { body: histogramPair() },
  'compare/flame': { body: flamePair() },
  'compare/trend': { body: trend() },
  sql: {
    body: {
      columns: [
        { name: 'func', type: 'string' },
        { name: 'lost', type: 'float' },
      ],
      rows: [['pack', 1.5]],
      cut: false,
      seconds: 0.01,
    },
  },
  explain: {
    body: {
      ...{ sentence: 'x', selected: 9, lost_us: 9, reckoned: false, looked: 9, typical: 4 },
      ...{ others: 0, functions: [], fields: [], command: 'x' },
    },
  },
  'explain/groups': {
    body: {
      ...{ field: 'rank', name: 'rank', selected: 9, lost_us: 10, reckoned: false, looked: 9 },
      ...{ rows: [group('rank=5'), group('rank=2')], ranges: false, values: 2 },
      ...{ rest: group(''), none: group(''), command: 'x' },
    },
  },
};

/** Tables and charts without an export, as markup. */
function without(root: Element): string[] {
  const tables = [...root.querySelectorAll('table')].filter(
    (t) =>
      !t.closest('.chart') &&
      !t.closest('.table-box, .plain-table')?.querySelector('.export-table'),
  );
  // Not charts: icons, scales of colors, and small lines in rows and tiles, which tables and figures contain.
  const other = 'table, .tile, button, a, nav, summary, .scale, .ratio-scale';
  const charts = [...root.querySelectorAll('canvas, .chart, svg')].filter(
    (c) => !c.closest(other) && !c.closest('[data-figure]')?.querySelector('.export-figure'),
  );
  return [...tables, ...charts].map((e) => e.outerHTML.slice(0, 200));
}

const views: [string, string, ReactNode, tables: number, figures: number][] = [
  ['overview', '', <OverviewView key="" />, 0, 2],
  ['findings', '', <FindingsView key="" />, 1, 0],
  ['findings', `sel=${first.key}`, <FindingsView key="" />, 2, 1],
  ['findings', 'sel=slow', <FindingsView key="" />, 3, 1],
  ['functions', '', <FunctionsView key="" />, 1, 0],
  ['functions', 'sel=0:13', <FunctionsView key="" />, 1, 4],
  ['functions', 'mode=flame', <FunctionsView key="" />, 1, 1],
  ['functions', 'mode=lost', <FunctionsView key="" />, 1, 1],
  ['functions', 'mode=counters', <FunctionsView key="" />, 1, 0],
  ['ranks', 'sel=8', <RanksView key="" />, 1, 2],
  ['timeline', '', <TimelineView key="" />, 2, 2],
  ['gpus', 'sel=0:2', <GpusView key="" />, 5, 2],
  ['compare', '', <CompareView key="" />, 1, 0],
  ['compare', 'sel=0:main > exchange > MPI_Waitall()', <CompareView key="" />, 2, 1],
  ['compare', 'mode=flame', <CompareView key="" />, 0, 1],
  ['compare', 'mode=trend', <CompareView key="" />, 1, 1],
  ['e/0:4:19:1100', '', <EvidenceView key="" event="0:4:19:1100" />, 3, 2],
  ['pipeline', '', <PipelineView key="" />, 1, 0],
  ['pipeline', 'tab=ranks', <PipelineView key="" />, 1, 0],
  ['pipeline', 'tab=services', <PipelineView key="" />, 1, 0],
  ['pipeline', 'tab=tallies', <PipelineView key="" />, 1, 0],
  ['pipeline', 'tab=cost', <PipelineView key="" />, 1, 0],
  ['overview', 'sql=SELECT+1', <SqlDrawer key="" />, 1, 0],
  ['overview', 'sql=SELECT+1&sqlchart=bar', <SqlDrawer key="" />, 0, 1],
  ['findings', 'explain=finding%3Daaaa%26by%3Drank', <ExplainDrawer key="" />, 1, 0],
];

test.each(views)(
  '%s?%s exports its tables and charts',
  async (view, query, shown, tables, figures) => {
    location.hash = `#/${view}?${query}`;
    serve(replies);
    const session = { overview: overview(8, { live: false, gpus: true }), status: status(8) };
    const { container } = renderIn(session, shown);
    await waitFor(() => {
      expect(container.querySelectorAll('.export-table').length).toBeGreaterThanOrEqual(tables);
      expect(container.querySelectorAll('[data-figure] .export-figure')).toHaveLength(figures);
    });
    expect(without(container)).toEqual([]);
    for (const e of container.querySelectorAll('.export-table')) {
      expect(e.textContent).toContain('Download CSV');
      expect(e.textContent).toContain('Download Markdown');
    }
    for (const e of container.querySelectorAll('.export-figure')) {
      expect(e.textContent).toContain('Download SVG');
      expect(e.textContent).toContain('Download PNG');
    }
  },
);
