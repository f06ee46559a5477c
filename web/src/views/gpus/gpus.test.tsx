import { cleanup, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { breakdown, gpuTime, rankSteps } from '../../test/fixtures/gpus.ts';
import { overview } from '../../test/fixtures/run.ts';
import { renderIn, serve } from '../../test/render.tsx';
import { clockWords } from './Collectives.tsx';
import GpusView from './GpusView.tsx';
import { labeled, ordered, parts, stack, widths } from './parts.ts';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(hash = '#/gpus', gpus = true, collectives = gpus) {
  location.hash = hash;
  const requests = serve({
    breakdown: { body: breakdown(gpus ? 4 : 0) },
    'breakdown/steps': { body: rankSteps(2) },
  });
  renderIn({ overview: overview(4, { live: false, gpus, collectives }) }, <GpusView />);
  return requests;
}

describe('the view of GPUs', () => {
  test('shows ranks, what is missing, collective operations and clocks', async () => {
    show();
    const grid = await screen.findByRole('grid', { name: 'Time of GPUs by rank' });
    const rows = within(grid).getAllByRole('row').slice(1);
    expect(rows.map((r) => r.textContent)).toHaveLength(4);
    expect(rows[2]?.textContent).toContain('40 %'); // host wait
    expect(screen.getByText(/968 activities of GPUs without a launch/)).toBeTruthy();
    const operations = screen.getByRole('grid', { name: /Collective operations/ });
    expect(within(operations).getByRole('row', { name: /allreduce/ }).textContent).toMatch(
      /4 of 5.*26\.3 MB.*2\.83 ms.*774 µs.*2 \(66\.7 % of calls\).*13\.9 GB\/s/,
    );
    expect(screen.getByText(/up to 131 µs apart/)).toBeTruthy();
    expect(screen.getByRole('row', { name: /\+131 µs/ })).toBeTruthy();
  });

  test('shows the steps and streams of a rank, and leads to the findings of a step', async () => {
    const requests = show();
    const grid = await screen.findByRole('grid', { name: 'Time of GPUs by rank' });
    await userEvent.click(within(grid).getAllByRole('row')[3] ?? grid);
    expect(location.hash).toContain('sel=0:2');
    const detail = await screen.findByRole('complementary', { name: 'rank 2' });
    const steps = await within(detail).findByRole('grid', { name: /by training step/ });
    expect(requests.at(-1)?.path).toContain('breakdown/steps?program=0&rank=2');
    expect(within(steps).getByRole('link', { name: '42' }).getAttribute('href')).toBe(
      '#/findings?rank=2&t0=0.500000&t1=0.500600',
    );
    expect(within(detail).getByRole('row', { name: /3753.*118 ms/ })).toBeTruthy();
    await userEvent.click(within(detail).getByRole('button', { name: 'Close' }));
    expect(screen.queryByRole('complementary')).toBeNull();
  });

  test('shows the collective operations of a run without GPUs', async () => {
    show('#/gpus', false, true);
    const operations = await screen.findByRole('grid', { name: /Collective operations/ });
    expect(within(operations).getByRole('row', { name: /allreduce/ })).toBeTruthy();
    expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Collective operations');
    expect(screen.queryByText(/Time of GPUs/)).toBeNull();
  });

  test('says why a run has no times, and requests nothing', () => {
    const requests = show('#/gpus', false);
    expect(
      screen.getByText('This run has no times of GPUs and no collective operations.'),
    ).toBeTruthy();
    expect(requests).toEqual([]);
  });
});

test('the parts add up to the total', () => {
  const t = gpuTime(2);
  expect(parts.reduce((sum, p) => sum + p.time(t), 0)).toBeCloseTo(t.total_us);
});

test('ranks are ordered by shares, not times', () => {
  const rows = [gpuTime(0), gpuTime(1, { total_us: 9000, idle_us: 500 }), gpuTime(2)];
  expect(ordered(rows, 'rank')).toBe(rows);
  expect(ordered(rows, 'idle').map((t) => t.rank)).toEqual([2, 0, 1]);
  expect(ordered(rows, 'compute').map((t) => t.rank)).toEqual([1, 2, 0]);
});

test('bars fill the height by share, and by time only the longest does', () => {
  const rows = [gpuTime(0), gpuTime(1, { total_us: 2000, compute_us: 1750 })];
  const top = (most: number | undefined, bar: number) =>
    Math.min(
      ...stack(rows, 200, 100, most).flatMap((l) => {
        const moves = [...l.path.matchAll(/M([\d.]+) ([\d.]+)/g)];
        return moves.filter((m) => Math.floor(Number(m[1]) / 100) === bar).map((m) => Number(m[2]));
      }),
    );
  expect([top(undefined, 0), top(undefined, 1)]).toEqual([0, 0]);
  expect([top(2000, 0), top(2000, 1)]).toEqual([50, 0]);
});

test('a thousand bars fit, and their labels do not overlap', () => {
  const { step, bar } = widths(1000, 900);
  expect([step, bar]).toEqual([0.9, 0.9]);
  const at = labeled(1000, step, 40);
  expect(at.length).toBeLessThanOrEqual(900 / 40);
  expect(at[1]).toBe(50);
  expect(labeled(4, 225, 40)).toEqual([0, 1, 2, 3]);
});

test('clocks without common operations are not called equal', () => {
  const clock = { program: 0, offset_us: 0, matched: 0 };
  expect(
    clockWords([
      { ...clock, rank: 0 },
      { ...clock, rank: 1 },
    ]),
  ).toContain('No clock was corrected');
});
