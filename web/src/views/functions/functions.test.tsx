import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  flame,
  functionDetail,
  functionRow,
  functionTable,
  liveRow,
  node,
} from '../../test/fixtures/functions.ts';
import { overview } from '../../test/fixtures/run.ts';
import { without } from '../../test/fixtures/without.ts';
import { renderIn, serve, type Reply } from '../../test/render.tsx';
import FunctionsView from './FunctionsView.tsx';
import { byHost } from './RankBars.tsx';

beforeEach(() => {
  HTMLCanvasElement.prototype.getContext = () => null; // there is nothing to draw on here
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(hash: string, replies: Record<string, Reply> = {}, live = false) {
  location.hash = hash;
  const requests = serve({
    functions: { body: functionTable() },
    'functions/': { body: functionDetail() },
    flame: { body: flame() },
    counters: { body: { rows: [] } },
    events: { body: { rows: [] } },
    ...replies,
  });
  renderIn({ overview: overview(8, { live }) }, <FunctionsView />);
  return requests;
}

describe('the table of functions', () => {
  test('lists functions with lost time, sorted as in the address', async () => {
    show('#/functions?sort=-exclusive');
    const grid = await screen.findByRole('grid', { name: 'Functions' });
    const rows = within(grid).getAllByRole('row').slice(1);
    expect(rows.map((r) => within(r).getAllByRole('cell')[0]?.textContent)).toEqual([
      'MPI_Waitall()',
      'pack_halo()heat2d.cpp:31',
    ]);
  });

  test('explains missing values of a live run', async () => {
    show('#/functions', { functions: { body: { rows: [liveRow()], total: 1 } } }, true);
    const grid = await screen.findByRole('grid', { name: 'Functions' });
    const dashes = within(grid).getAllByTitle('Available when the run ends');
    expect(dashes.length).toBeGreaterThan(4);
    expect(dashes[0]?.textContent).toBe('–');
    expect(screen.getByText(/are stored when the run ends/)).toBeTruthy();
  });

  test('reports how many rows were cut', async () => {
    show('#/functions', { functions: { body: { ...functionTable(), total: 7000, next: '2' } } });
    expect(await screen.findByText(/showing 2 of 7000, by lost time/)).toBeTruthy();
  });

  test('shows errors and keeps the other tabs', async () => {
    show('#/functions', {
      functions: { status: 503, body: { error: 'the store is away', hint: 'wait' } },
    });
    expect(await screen.findByText('The store is away.')).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Counters' })).toBeTruthy();
  });

  test('explains an empty table', async () => {
    show('#/functions', { functions: { body: { rows: [], total: 0 } } }, true);
    expect(await screen.findByText('No functions yet.')).toBeTruthy();
  });

  test('opens the details of a row and stores them in the address', async () => {
    show('#/functions');
    const grid = await screen.findByRole('grid', { name: 'Functions' });
    await userEvent.click(within(grid).getByText('pack_halo()'));
    expect(location.hash).toContain('sel=0:13');
    const detail = await screen.findByRole('complementary');
    await within(detail).findByText('Ranks by lost time');
    await userEvent.click(within(detail).getByRole('button', { name: 'Close the function' }));
    expect(location.hash).not.toContain('sel=');
  });
});

describe('the details of a function', () => {
  test('show model, ranks with hosts, call paths and a link to findings', async () => {
    show('#/functions?sel=0:13');
    const detail = await screen.findByRole('complementary');
    expect(await within(detail).findByText('nid00123')).toBeTruthy();
    expect(within(detail).getByText('2 ranks on 2 hosts')).toBeTruthy();
    expect(within(detail).getByText(/main › time_step\(int\) › pack_halo\(\)/)).toBeTruthy();
    expect(within(detail).getByText(/usual 2 to 62 µs; flagged above 113 µs/)).toBeTruthy();
    const findings = within(detail).getByRole('link', { name: 'findings' });
    expect(findings.getAttribute('href')).toContain('#/findings?q=pack_halo');
  });

  test('link to the costliest anomalies of this function only', async () => {
    const event = (id: string, name: string) => ({
      event_id: id,
      program: 0,
      rank: 1,
      host: 'h',
      at_s: 2,
      lost_us: 5,
      exclusive_us: 6,
      status: 'confirmed',
      function: name,
    });
    const name = functionRow().function;
    show('#/functions?sel=0:13', {
      events: { body: { rows: [event('1:2:3', name), event('9:9:9', `${name}x`)] } },
    });
    const link = await screen.findByRole('link', { name: '1:2:3' });
    expect(link.getAttribute('href')).toBe('#/e/0:1:2:3');
    expect(screen.queryByRole('link', { name: '9:9:9' })).toBeNull();
  });

  test('explain a missing model', async () => {
    const rest = without(functionDetail({ ranks: [], paths: [], anomalies: 0 }), 'model');
    show('#/functions?sel=0:13', { 'functions/': { body: rest } });
    expect(await screen.findByText('No model.')).toBeTruthy();
    expect(screen.getByText('No rank has anomalies.')).toBeTruthy();
  });

  test('report a missing function', async () => {
    show('#/functions?sel=0:99', {
      'functions/': { status: 404, body: { error: 'run r has no function 0:99' } },
    });
    expect(await screen.findByText('Run r has no function 0:99.')).toBeTruthy();
  });

  test('group ranks by host', () => {
    const [a, b] = functionDetail().ranks;
    if (!a || !b) throw new Error('the fixture has two ranks');
    expect(byHost([a, { ...b, host: a.host }, { ...b, rank: 7, lost_us: 1 }])).toEqual([
      { host: 'nid00123', lost: 126_000, n: 2 },
      { host: 'nid00124', lost: 1, n: 1 },
    ]);
  });
});

describe('the flame graph', () => {
  test('navigates with arrows, zooms with Enter and resets with Escape', async () => {
    show('#/functions?mode=flame');
    const graph = await screen.findByRole('application');
    const at = () => document.querySelector('.flame-chosen')?.textContent ?? '';
    for (const [key, name] of [
      ['ArrowDown', 'all'],
      ['ArrowDown', 'main'],
      ['ArrowDown', 'exchange'],
      ['ArrowRight', 'update'],
    ] as const) {
      fireEvent.keyDown(graph, { key });
      await waitFor(() => expect(at()).toContain(name));
    }
    fireEvent.keyDown(graph, { key: 'Enter' });
    await waitFor(() => expect(location.hash).toMatch(/at=\w+/));
    expect(screen.getByRole('navigation').textContent).toBe('all › main › update');
    fireEvent.keyDown(graph, { key: 'Escape' });
    await waitFor(() => expect(screen.getByRole('navigation').textContent).toBe('all › main'));
  });

  test('reports the time of search matches', async () => {
    show('#/functions?mode=flame&q=mpi');
    expect(await screen.findByText('1 place with “mpi”: 50 µs, 50 %')).toBeTruthy();
  });

  test('explains omitted call paths', async () => {
    show('#/functions?mode=flame', {
      flame: { body: flame({ partial: '12 call paths with the least time are left out.' }) },
    });
    expect(await screen.findByText(/12 call paths with the least time/)).toBeTruthy();
  });

  test('offers a table', async () => {
    show('#/functions?mode=flame');
    await userEvent.click(await screen.findByText('The 4 top functions as a table'));
    const table = screen.getByRole('grid', { name: 'Functions by time' });
    const first = within(table).getAllByRole('row')[1];
    expect(first?.textContent).toContain('MPI_Waitall()50 µs50 %');
  });

  test('reports that no time was lost', async () => {
    show('#/functions?mode=lost', { flame: { body: flame({ root: node('all', 0) }) } });
    expect(await screen.findByText('No time lost to anomalies.')).toBeTruthy();
  });

  test('explains missing times of a live run', async () => {
    show('#/functions?mode=flame', { flame: { body: flame({ root: node('all', 0) }) } }, true);
    expect(await screen.findByText('Call times are not stored yet.')).toBeTruthy();
  });
});

describe('counters', () => {
  test('are listed with their numbers', async () => {
    const row = {
      program: 0,
      counter: 'Page faults',
      values: 9,
      mean: 7961.44,
      stddev: null,
      minimum: 0,
      maximum: 12_000,
      sum: 71_653,
    };
    show('#/functions?mode=counters', { counters: { body: { rows: [row] } } });
    const grid = await screen.findByRole('grid', { name: 'Counters' });
    expect(within(grid).getByText('7.96 k').title).toBe('7961.44');
    expect(within(grid).getByText('–')).toBeTruthy();
  });

  test('distinguish missing from pending', async () => {
    show('#/functions?mode=counters', {}, true);
    expect(await screen.findByText('No counters are stored yet.')).toBeTruthy();
    cleanup();
    show('#/functions?mode=counters');
    expect(await screen.findByText('The traces have no counters.')).toBeTruthy();
  });
});

test('shows hostile names as text', async () => {
  const evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
  show('#/functions?sel=0:13', {
    functions: { body: { rows: [functionRow({ function: evil, group: evil })], total: 1 } },
    'functions/': {
      body: functionDetail({
        function: evil,
        group: evil,
        ranks: functionDetail().ranks.map((r) => ({ ...r, host: evil })),
        paths: [{ call_path: [evil], anomalies: 1, lost_us: 1 }],
      }),
    },
  });
  await screen.findByText('Ranks by lost time');
  expect(screen.getAllByText(evil, { exact: false }).length).toBeGreaterThan(1);
  cleanup();
  show('#/functions?mode=flame&q=img', {
    flame: { body: flame({ root: node('all', 0, [node(evil, 5)]), partial: evil }) },
  });
  await screen.findByRole('application');
  cleanup();
  show('#/functions?mode=counters', {
    counters: { body: { rows: [{ program: 0, counter: evil, values: 1, mean: 1 }] } },
  });
  await screen.findByRole('grid');
  expect(document.querySelector('img, script')).toBeNull();
  expect((window as unknown as { hit?: number }).hit).toBeUndefined();
});
