import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test } from 'vitest';
import type { Status } from '../../api/index.ts';
import { overview, status } from '../../test/fixtures/run.ts';
import { renderIn, serve } from '../../test/render.tsx';
import { busy, costs, sums, tallies, troubleOf } from './figures.ts';
import PipelineView from './PipelineView.tsx';

function show(now: Status | undefined = status(1000), hash = '', incomplete = false) {
  location.hash = hash;
  serve({ pipeline: { body: now } });
  return renderIn({ overview: { ...overview(1000), incomplete }, status: now }, <PipelineView />);
}

// Reads the table itself: queries by role compute the style of every cell, which takes seconds.
const firstCells = (name: RegExp) =>
  [...screen.getByRole<HTMLTableElement>('grid', { name }).rows]
    .slice(1)
    .map((r) => r.cells[0]?.textContent);

describe('the pipeline', () => {
  test('starts with problems and their remedies', () => {
    show();
    const words = screen.getByText(/it is 42.7 s behind/);
    expect(words.textContent).toContain('--ranks-per-analyzer');
  });

  test('reports a healthy pipeline', () => {
    show({
      ...status(8),
      health: [{ part: 'store', ok: true, severity: 'info', sentence: 'it stores' }],
    });
    expect(screen.getByText('1 part healthy.')).toBeTruthy();
  });

  test('does not call an incomplete run healthy', () => {
    show({ ...status(8), health: [] }, '', true);
    expect(screen.getByText(/data is missing/)).toBeTruthy();
    expect(screen.queryByText(/No problems/)).toBeNull();
  });

  test('lists analyzers with problems first', () => {
    show();
    expect(firstCells(/Analyzers/).slice(0, 3)).toEqual([
      'silent',
      'reading, dropped messages',
      'reading',
    ]);
  });

  test('draws only visible ranks of ten thousand, problems first', async () => {
    show(status(10_000), '#/pipeline?tab=ranks');
    const grid = await screen.findByRole<HTMLTableElement>('grid', { name: /Ranks/ });
    expect(grid.getAttribute('aria-rowcount')).toBe('10001');
    expect(grid.rows.length).toBeLessThan(80);
    expect(firstCells(/Ranks/)[0]).toBe('analyzer silent');
  });

  test('lists repaired and lost data', async () => {
    show();
    await userEvent.click(screen.getByRole('tab', { name: 'Data quality' }));
    expect(screen.getByText('exits had no entry and were skipped')).toBeTruthy();
    expect(location.hash).toContain('tab=tallies');
  });

  test('shows the parameter server and the store', () => {
    show(
      { ...status(8), store: { ...(status(8).store ?? never()), last_error: 'the disk is full' } },
      '#/pipeline?tab=services',
    );
    expect(screen.getByText('Store (DuckDB)')).toBeTruthy();
    expect(screen.getByText('The store: the disk is full')).toBeTruthy();
    expect(screen.getByRole('grid', { name: /Shards/ })).toBeTruthy();
  });

  test('reports a run that is not watched', async () => {
    serve({
      pipeline: {
        status: 404,
        body: { error: 'run "old" is not the one that this process watches' },
      },
    });
    renderIn({ overview: overview(8, { live: false }) }, <PipelineView />);
    expect(await screen.findByText('No pipeline status for this run.')).toBeTruthy();
  });

  test('shows hostile names as text', () => {
    const evil = status(8);
    evil.nodes = (evil.nodes ?? []).map((n) => ({
      ...n,
      name: '<img src=x>',
      host: '<img src=y>',
    }));
    const { container } = show(evil);
    expect(container.querySelector('img')).toBeNull();
    expect(screen.getByText('<img src=x>')).toBeTruthy();
  });
});

function never(): never {
  throw new Error('the fixture has a store');
}

describe('figures of the pipeline', () => {
  test('find the worst analyzer', () => {
    const s = sums(status(1000));
    expect(s.behind).toBe(42.7);
    expect(s.drops).toBe(12);
    expect(s.p99).toBe(0.0031);
  });

  test('do not report a finished analyzer as behind', () => {
    const [node] = status(8).nodes ?? [];
    if (!node) return never();
    expect(troubleOf({ ...node, drops: 0, outbox_messages: 0, state: 'done' })).toBe('');
    expect(troubleOf({ ...node, drops: 0, outbox_messages: 0 })).toBe('behind');
    expect(busy({ ...node, connected: '' }, '')).toBeUndefined();
    return undefined;
  });

  test('add up over hosts and analyzers', () => {
    const two = status(16);
    two.nodes = (two.nodes ?? []).map((n) => ({ ...n, host: 'same' }));
    expect(costs(two)).toHaveLength(1);
    expect(costs(two)[0]).toMatchObject({ host: 'same', analyzers: 2, ranks: 16 });
    expect(tallies(two).map((t) => t.severity)).toEqual(['data loss', 'repaired']);
  });

  test('are empty without analyzers', () => {
    const none: Status = {
      run: { name: 'r', state: 'waiting', now: '' },
      totals: status(8).totals,
    };
    expect(sums(none)).toMatchObject({ behind: 0, drops: 0, p99: undefined, cpu: undefined });
    expect(costs(none)).toEqual([]);
    expect(tallies(none)).toEqual([]);
  });
});
