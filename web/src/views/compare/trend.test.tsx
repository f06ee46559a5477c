import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test } from 'vitest';
import { comparables, comparison, trend } from '../../test/fixtures/compare.ts';
import { renderIn, serve } from '../../test/render.tsx';
import CompareView from './CompareView.tsx';
import { dayOf, pointLines, pointsOf, sinceWords, trendLength } from './trend.ts';

const replies = {
  comparable: { body: comparables({ rows: trend().runs, usual: '0:night3' }) },
  compare: { body: comparison() },
  'compare/trend': { body: trend() },
};

function open(hash = '#/compare?mode=trend', answers: Parameters<typeof serve>[0] = replies) {
  location.hash = hash;
  const requests = serve(answers);
  renderIn({ run: 'night4' }, <CompareView />);
  return requests;
}

describe('many runs', () => {
  test('open the trend view', async () => {
    open('#/compare');
    await userEvent.click(await screen.findByRole('button', { name: 'Trend' }));
    expect(location.hash).toContain('mode=trend');
    await screen.findByRole('heading', { name: /solve is 2.1 × slower since night3: 591 µs/ });
    expect(screen.queryByRole('combobox', { name: 'Run A' })).toBeNull();
  });

  test('need at least three', async () => {
    open('#/compare', { ...replies, comparable: { body: comparables() } });
    await screen.findByRole('button', { name: 'Metadata' });
    expect(screen.queryByRole('button', { name: 'Trend' })).toBeNull();
  });

  test('have a chart per function and a table of all values', async () => {
    open();
    const solve = await screen.findByRole('application', { name: /^solve\(\)/ });
    expect(solve.getAttribute('aria-label')).toContain('worse: 2.80 s → 5.91 s since night3');
    expect(screen.getAllByRole('application').length).toBe(3);
    const rows = within(screen.getByRole('table')).getAllByRole('row');
    expect(rows.map((r) => r.textContent)).toEqual([
      'RunAll functionssolve()calm',
      'night19.00 s2.80 s1.00 s',
      'night29.00 s2.80 s–',
      'night312.0 s5.90 s1.00 s',
      'night412.0 s5.91 s1.00 s',
    ]);
    const which = within(screen.getByRole('group', { name: 'Metric' }));
    await userEvent.click(which.getByRole('button', { name: 'Lost time' }));
    expect(location.hash).toContain('metric=lost&mode=trend');
    await screen.findByText('No change in lost time over the runs.');
  });

  test('select points with arrows; Enter compares with the previous run', async () => {
    const requests = open();
    const solve = await screen.findByRole('application', { name: /^solve\(\)/ });
    solve.focus();
    await userEvent.keyboard('{ArrowRight}');
    expect(solve.textContent).toContain('night3');
    expect(solve.textContent).toContain('mean call time 590 ms');
    await userEvent.keyboard('{Home}{Enter}');
    expect(location.hash).toContain('mode=trend'); // nothing is before the first
    await userEvent.keyboard('{End}{ArrowLeft}{Enter}');
    await waitFor(() => expect(location.hash).toContain('a=0:night2&b=0:night3&mode=time'));
    await waitFor(() =>
      expect(requests.map((r) => r.path)).toContain(
        'api/v1/compare?a=0%3Anight2&b=0%3Anight3&limit=2000',
      ),
    );
  });

  test('compare on a click on a point', async () => {
    open('#/compare?mode=trend&metric=lost');
    const all = await screen.findByRole('application', { name: /^All functions/ });
    fireEvent.click(all, { clientX: 10_000 });
    await waitFor(() => expect(location.hash).toContain('a=0:night3&b=0:night4'));
    expect(location.hash).not.toContain('mode=');
  });

  test('filter by name and report too few matches', async () => {
    const requests = open('#/compare?mode=trend', {
      ...replies,
      'compare/trend?name=x': { body: trend({ runs: [], time: [], lost: [] }) },
    });
    await userEvent.type(await screen.findByRole('searchbox', { name: /Filter runs/ }), 'x');
    await screen.findByText('Fewer than two finished runs match “x”.');
    expect(requests.map((r) => r.path)).toContain('api/v1/compare/trend?name=x');
  });

  test('report unfinished runs and omitted ones', async () => {
    open('#/compare?mode=trend', {
      ...replies,
      'compare/trend': {
        body: trend({
          runs: [],
          time: [],
          lost: [],
          notices: [{ level: 'unknown', topic: 'left-out', sentence: 'Runs are left out: 2' }],
        }),
      },
    });
    await screen.findByText('Fewer than two finished runs.');
    await screen.findByText('Runs are left out: 2.');
  });
});

test('a run and its baseline count once; unfinished runs do not count', () => {
  const [a, b] = trend().runs;
  if (!a || !b) throw new Error('there are runs');
  expect(trendLength([a, b, { ...a, baseline: true, id: '1:x' }])).toBe(2);
  expect(trendLength([a, { ...b, state: 'running' }])).toBe(1);
});

test('describes a trend in words', () => {
  const t = trend();
  const [all, solve, calm] = t.time;
  if (!all || !solve || !calm) throw new Error('there are three');
  expect(sinceWords(t, calm)).toBe('1.00 s, unchanged');
  expect(sinceWords(t, { ...calm, values_us: [1, null] })).toBe('unknown in the latest run');
  expect(pointLines(t, calm, 'time', 1)).toEqual([['time', 'unknown']]);
  expect(pointLines(t, solve, 'time', 2)).toEqual([
    ['time of all calls', '5.90 s'],
    ['mean call time', '590 ms'],
    ['calls', '10'],
    ['previous run', '2.80 s'],
  ]);
  expect(pointLines(t, t.lost[0] ?? all, 'lost', 3)).toContainEqual(['share of time', '1 %']);
  expect(pointsOf(calm)).toEqual([
    { at: 0, y: 1 },
    { at: 2, y: 1 },
    { at: 3, y: 1 },
  ]);
  expect(dayOf(t.runs, 0)).toMatch(/1/);
  expect(dayOf(t.runs.slice(0, 1), 0)).toMatch(/\d\d/);
});
