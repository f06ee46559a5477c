import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test } from 'vitest';
import { flamePair, comparables, comparison, histogramPair } from '../../test/fixtures/compare.ts';
import { overview } from '../../test/fixtures/run.ts';
import { renderIn, serve } from '../../test/render.tsx';
import CompareView from './CompareView.tsx';
import { distanceWords, outline, stepsOf } from './overlay.ts';
import { chosenPair, command, mix, oneSide, relative, runText, signed } from './pair.ts';

const replies = {
  comparable: { body: comparables() },
  compare: { body: comparison() },
  'compare/histograms': { body: histogramPair() },
  'compare/flame': { body: flamePair() },
};

function open(hash = '#/compare', answers: Parameters<typeof serve>[0] = replies) {
  location.hash = hash;
  const requests = serve(answers);
  renderIn({ overview: overview(8, { place: '/runs/r' }) }, <CompareView />);
  return requests;
}

describe('the view', () => {
  test('compares the current run with the reference', async () => {
    const requests = open();
    await screen.findByRole('heading', { name: /B lost 4.10 s more than A/ });
    expect(requests.map((r) => r.path)).toContain('api/v1/compare?a=1%3Agood&b=0%3Ar&limit=2000');
    const rows = screen.getAllByRole('row').slice(1);
    expect(rows.map((r) => r.querySelectorAll('td')[1]?.textContent)).toEqual([
      'MPI_Waitall()',
      'pack',
      'old',
    ]);
    expect(
      within(rows[0] ?? document.body).getByRole('img', { name: '100 ms in A, 4.20 s in B' }),
    ).toBeTruthy();
  });

  test('explains how to add a second run', async () => {
    const rest = comparables({ usual: undefined });
    const body = { ...rest, rows: rest.rows.slice(0, 1) };
    open('#/compare', { comparable: { body } });
    await screen.findByText('Add a second run with --compare.');
    expect(screen.getByText(/chimbuko view \/runs\/r --compare OTHER_RUN/)).toBeTruthy();
  });

  test('offers the runs beside this one', async () => {
    const rest = comparables({ usual: undefined });
    const neighbors = ['tuesday', 'monday'].map((name, i) => ({
      ...{ id: `beside:${name}`, name, where: `/runs/${name}`, baseline: false },
      ...{ state: 'finished', started: '2026-03-03T05:06:07Z', bytes: 12_000_000 },
      ...{ program: ['lulesh', 'hpcg'][i] ?? '', same_program: i === 0 },
    }));
    const body = { ...rest, rows: rest.rows.slice(0, 1), neighbors, neighbors_dir: '/runs' };
    const requests = open('#/compare', { ...replies, comparable: { body } });
    const grid = await screen.findByRole('grid', { name: 'Runs to compare with' });
    const rows = within(grid).getAllByRole('row').slice(1);
    expect(rows.map((r) => r.textContent)).toEqual([
      expect.stringMatching(/^tuesdaylulesh .*finished12(\.0)? MB/),
      expect.stringMatching(/^mondayhpcg other.*finished12(\.0)? MB/),
    ]);
    await userEvent.click(within(grid).getByRole('link', { name: 'tuesday' }));
    await waitFor(() =>
      expect(requests.map((r) => r.path)).toContain(
        'api/v1/compare?a=beside%3Atuesday&b=0%3Ar&limit=2000',
      ),
    );
    await userEvent.click(await screen.findByRole('button', { name: 'Other runs…' }));
    expect(await screen.findByRole('grid', { name: 'Runs to compare with' })).toBeTruthy();
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Run A' }), 'beside:monday');
    expect(location.hash).toContain('a=beside:monday');
  });

  test('reports runs that cannot be compared', async () => {
    open('#/compare', {
      ...replies,
      comparable: { body: comparables({ problems: ['old: no run is in the store'] }) },
    });
    await screen.findByText('old: no run is in the store.');
  });

  test('selects and swaps A and B in the address', async () => {
    const requests = open();
    await userEvent.click(await screen.findByRole('button', { name: 'Swap A and B' }));
    expect(location.hash).toContain('a=0:r&b=1:good');
    await waitFor(() =>
      expect(requests.map((r) => r.path)).toContain('api/v1/compare?a=0%3Ar&b=1%3Agood&limit=2000'),
    );
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Run A' }), '1:good');
    expect(location.hash).toContain('a=1:good');
  });

  test('filters by kind of change', async () => {
    open();
    await userEvent.click(await screen.findByRole('button', { name: '1 gone' }));
    await waitFor(() => expect(screen.queryByText('pack')).toBeNull());
    expect(screen.getByText('old')).toBeTruthy();
    expect(location.hash).toContain('kind=gone');
    await userEvent.click(screen.getByRole('button', { name: '1 gone' }));
    await userEvent.click(screen.getByRole('button', { name: '1 same' }));
    expect(await screen.findByText('calm')).toBeTruthy();
  });

  test('overlays the histograms of a change', async () => {
    open();
    await userEvent.click(await screen.findByText('MPI_Waitall()'));
    const detail = await screen.findByRole('complementary', { name: 'Change details' });
    expect(
      await within(detail).findByRole('img', { name: /Histograms of 12.800 calls in A/ }),
    ).toBeTruthy();
    expect(within(detail).getByText('node02, node03')).toBeTruthy();
    expect(within(detail).getByText('0.50')).toBeTruthy();
    expect(within(detail).getByRole('link', { name: 'findings in B' })).toBeTruthy();
    expect(within(detail).queryByRole('link', { name: 'findings in A' })).toBeNull(); // a baseline has none
    await userEvent.click(within(detail).getByRole('button', { name: 'Close the change' }));
    expect(screen.queryByRole('complementary')).toBeNull();
  });

  test('explains missing histograms', async () => {
    open('#/compare?sel=0:main > exchange > MPI_Waitall()', {
      ...replies,
      'compare/histograms': { body: histogramPair({ missing: 'A has no model of it.' }) },
    });
    await screen.findByText('A has no model of it.');
  });

  test('lists functions by the time of all their calls', async () => {
    open('#/compare?mode=time');
    expect(await screen.findByText('MPI_Allreduce()')).toBeTruthy();
    expect(screen.getByText('+21.3 s')).toBeTruthy();
  });

  test('scales the flame graph to both runs', async () => {
    open('#/compare?mode=flame');
    const graph = await screen.findByRole('application', { name: /width of the time in B/ });
    expect(graph.textContent).toContain('change +50 µs, +50 %');
    expect(screen.getByText(/1 call path only in A/)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Width of A' }));
    await screen.findByRole('application', { name: /width of the time in A/ });
    expect(screen.queryByText(/only in A/)).toBeNull();
  });

  test('lists metadata differences, and all metadata on request', async () => {
    open('#/compare?mode=metadata');
    expect(await screen.findByText('OMP_NUM_THREADS')).toBeTruthy();
    expect(screen.queryByText('started')).toBeNull();
    await userEvent.click(screen.getByRole('checkbox', { name: /show all metadata/ }));
    expect(await screen.findByText('started')).toBeTruthy();
    expect(screen.getByText('algorithm')).toBeTruthy();
  });

  test('shows errors', async () => {
    open('#/compare?a=7:x', {
      ...replies,
      compare: { status: 404, body: { error: 'no run "7:x" can be compared here', hint: 'look' } },
    });
    await screen.findByText('No run "7:x" can be compared here.');
    expect(screen.getByRole('combobox', { name: 'Run A' })).toBeTruthy(); // another can be chosen
  });
});

describe('the selected runs', () => {
  const list = comparables();
  test('come from the address or the default', () => {
    expect(chosenPair(list, 'r', undefined, undefined)).toEqual({ a: '1:good', b: '0:r' });
    expect(chosenPair(list, 'r', '0:x', '0:y')).toEqual({ a: '0:x', b: '0:y' });
  });

  test('never default to the same run twice', () => {
    expect(chosenPair(list, 'r', undefined, '1:good')).toEqual({ a: '0:r', b: '1:good' });
    expect(
      chosenPair(comparables({ rows: [], usual: undefined }), 'r', undefined, undefined).a,
    ).toBeUndefined();
  });

  test('have names and locations', () => {
    expect(list.rows.map(runText)).toEqual(['r', 'baseline good (good.baseline)']);
    expect(command(list.rows[1], list.rows[0])).toBe('chimbuko diff good.baseline r');
    const odd = { id: '1:x', name: 'x', where: "it's; rm", baseline: false, state: '' };
    expect(command(odd, undefined)).toBe(`chimbuko diff 'it'\\''s; rm' RUN`);
  });
});

describe('changes', () => {
  test('sort from removed to new', () => {
    expect([relative([4, 0]), relative([4, 4]), relative([2, 4]), relative([0, 4])]).toEqual([
      -1, 0, 0.5, 1,
    ]);
    expect(relative([0, 0])).toBe(0);
    expect([signed(5), signed(-5), signed(0)]).toEqual(['+5 µs', '−5 µs', '0 µs']);
  });

  test('blend colors', () => {
    expect(mix('#000000', '#ff8000', 0.5)).toBe('#804000');
    expect(mix('#102030', '#ffffff', 0)).toBe('#102030');
  });

  test('cover the call trees of both runs', () => {
    const a = oneSide(flamePair().root, 0);
    expect(a.root.children.map((c) => [c.function, c.total_us])).toEqual([
      ['solve', 60],
      ['old', 40],
    ]);
    const b = oneSide(flamePair().root, 1);
    expect([b.root.children.length, b.hidden]).toEqual([1, 1]);
    expect(b.both.get(b.root)?.total_us).toEqual([100, 150]);
  });
});

describe('overlaid histograms', () => {
  test('scale to the largest share and leave empty bins empty', () => {
    const s = stepsOf(histogramPair());
    expect(Math.max(...s.heights[0])).toBe(1);
    expect(s.heights[0][2]).toBe(0);
    expect(s.heights[1][0]).toBeGreaterThan(0);
    expect(s.sides[0]).toBe(0);
    expect(s.sides.at(-1)).toBe(1);
    expect(s.at).toBeCloseTo(2 / 3);
  });

  test('are linear on request', () => {
    const h = histogramPair();
    const s = stepsOf(h, 'linear');
    const most = Math.max(...h.shares[0], ...h.shares[1]);
    expect(s.heights[1]).toEqual(h.shares[1].map((x) => x / most));
    expect(s.shares[0]).toEqual({ at: 0, value: 0 });
  });

  test('accept one value and no values', () => {
    for (const h of [
      histogramPair({ edges_us: [5, 5.5], shares: [[1], [1]], distance: 0 }),
      histogramPair({ edges_us: [], shares: [[], []] }),
    ]) {
      const s = stepsOf(h);
      expect([...s.sides, ...s.heights[0]].every(Number.isFinite)).toBe(true);
    }
  });

  test('draw steps', () => {
    expect(
      outline(
        [0, 0.5, 1],
        [1, 0],
        (x) => x * 10,
        (h) => 5 - h * 5,
      ),
    ).toBe('M0.0 5.0V0.0H5.0V5.0H10.0V5.0Z');
  });

  test('report the largest difference', () => {
    expect(distanceWords(histogramPair())).toBe(
      '100 % of the calls in A and 50 % of those in B took up to 40 µs: the largest difference.',
    );
    expect(distanceWords(histogramPair({ distance: 0 }))).toContain('distributions are equal');
  });
});
