import { cleanup, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ratioRamp } from '../../color/index.ts';
import { rankFunctions, rankRow, rankTable } from '../../test/fixtures/ranks.ts';
import { overview } from '../../test/fixtures/run.ts';
import { renderIn, serve, type Reply } from '../../test/render.tsx';
import { points } from './EfficiencyPanel.tsx';
import { describe as sentence } from './RankDetail.tsx';
import RanksView from './RanksView.tsx';
import { pixels, position } from './ratio.ts';
import { labels } from './RatioMap.tsx';

beforeEach(() => {
  HTMLCanvasElement.prototype.getContext = () => null; // there is nothing to draw on here
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(hash = '#/ranks', reply: Reply = { body: rankTable() }, ranks = 16) {
  location.hash = hash;
  const requests = serve({ ranks: reply, 'ranks/functions': { body: rankFunctions() } });
  renderIn({ overview: overview(ranks, { live: false }) }, <RanksView />);
  return requests;
}

describe('the view of ranks', () => {
  test('lists the costliest ranks first', async () => {
    show();
    const grid = await screen.findByRole('grid', { name: /compared with their peers/ });
    const rows = within(grid).getAllByRole('row').slice(1);
    expect(rows).toHaveLength(16);
    expect(rows[0]?.textContent).toContain('rank 8');
    expect(rows[0]?.textContent).toContain('1.46×');
    expect(rows[0]?.textContent).toContain('since 8.00 s');
    expect(rows[0]?.textContent).toContain('14 %');
  });

  test('shows missing ranks as missing', async () => {
    show();
    expect(await screen.findByText(/No data of 1 rank: 15 \(node03\)/)).toBeTruthy();
    const row = screen.getByRole('row', { name: /rank 15/ });
    expect(row.textContent).toContain('no data');
    expect(row.textContent).not.toContain('×');
    expect(screen.getByText('no data', { selector: 'li' })).toBeTruthy();
  });

  test('leads to the finding, the functions and the twin of a slow rank', async () => {
    show();
    await userEvent.click(await screen.findByRole('row', { name: /rank 9/ }));
    const detail = await screen.findByRole('complementary', { name: 'rank 9' });
    expect(detail.textContent).toContain('node02 takes 1.90× as long as its 12 peers');
    const link = (name: RegExp) => within(detail).getByRole('link', { name }).getAttribute('href');
    expect(link(/Finding 1/)).toBe('#/findings?sel=abc');
    expect(link(/Functions that lost time/)).toBe('#/findings?rank=9');
    expect(link(/push_boris/)).toBe('#/functions?sel=0:7');
    expect(link(/rank 3/)).toContain('rank=3');
    const functions = await within(detail).findByRole('table', { name: /with the most time/ });
    expect(within(functions).getByRole('row', { name: /field_solve/ }).textContent).toContain(
      '0.95×',
    );
    await userEvent.click(within(detail).getByRole('button', { name: 'Close' }));
    expect(screen.queryByRole('complementary')).toBeNull();
  });

  test('shows the functions of a rank that is not slow', async () => {
    const requests = show();
    await userEvent.click(await screen.findByRole('row', { name: /rank 2/ }));
    expect(await screen.findByRole('row', { name: /field_solve/ })).toBeTruthy();
    expect(requests.at(-1)?.path).toContain('ranks/functions?by=rank&program=0&rank=2&host=node00');
  });

  test('begins with hosts if there are many ranks, and shows the ranks of a host', async () => {
    const host = rankRow(8, { place: 'node02', last_rank: 11, ranks: 4 });
    const reply = { body: rankTable({ by: 'host', rows: [host], total: 1 }) };
    const requests = show('#/ranks', reply, 10_000);
    await userEvent.click(await screen.findByRole('row', { name: /node02/ }));
    expect(requests[0]?.path).toContain('ranks?by=host');
    const detail = await screen.findByRole('complementary', { name: 'node02' });
    const link = within(detail).getByRole('link', { name: 'Show its 4 ranks' });
    expect(link.getAttribute('href')).toBe('#/ranks?by=rank&host=node02&rank=8-11');
  });

  test('says that neighbors share a row', async () => {
    show('#/ranks', { body: rankTable({ total: 10_000 }) });
    expect(await screen.findByText(/in all: neighbors share a row/)).toBeTruthy();
  });

  test('says why there is no comparison', async () => {
    const nothing = { windows: [], rows: [], efficiency: [], slow: [], missing: [], total: 0 };
    show('#/ranks', { body: rankTable(nothing) });
    expect(await screen.findByText('Ranks are not compared yet.')).toBeTruthy();
  });

  test('shows errors', async () => {
    show('#/ranks', { status: 500, body: { error: 'the store is away' } });
    expect(await screen.findByText('The store is away.')).toBeTruthy();
  });
});

test('the scale of ratios is symmetric and ends at 2', () => {
  expect(position(1)).toBe(0.5);
  expect(position(2)).toBe(1);
  expect(position(9)).toBe(1);
  expect(position(0.5)).toBe(0);
  expect(position(1.1) - 0.5).toBeCloseTo(0.5 - position(1 / 1.1));
});

test('cells without data are transparent, others opaque', () => {
  const rows = [rankRow(0, { ratios: [1, null, 0, 1.9] })];
  const data = pixels(rows, 4, ratioRamp('dark'), [1, 2, 3]);
  expect([3, 7, 11, 15].map((i) => data[i])).toEqual([255, 0, 255, 255]);
  expect([...data.slice(8, 11)]).toEqual([1, 2, 3]);
  expect([...data.slice(0, 3)]).not.toEqual([...data.slice(12, 15)]);
});

test('labels do not overlap', () => {
  expect(labels(4, 20)).toEqual([0, 1, 2, 3]);
  expect(labels(100, 3.2).length).toBe(20);
});

test('a gap in time breaks the lines of efficiency', () => {
  const list = rankTable().efficiency.filter((e) => !e.entire && e.from_s !== 5);
  const gap = points(list, 'parallel').filter(([, v]) => v === null);
  expect(gap).toEqual([[5.5, null]]);
});

test('sentences distinguish roles, weak evidence and missing data', () => {
  const [slow] = rankTable().slow;
  expect(sentence(rankRow(8), slow && { ...slow, weak: true }, 16)).toContain('evidence is weak');
  expect(sentence(rankRow(8, { pattern: 'role' }), slow, 16)).toContain('no single rank');
  expect(sentence(rankRow(0), undefined, 16)).toContain('within the usual spread');
  expect(sentence(rankRow(0, { ratio: null }), undefined, 16)).toContain('no peers');
  expect(sentence(rankRow(0, { missing: 1 }), undefined, 16)).toContain('No data');
});
