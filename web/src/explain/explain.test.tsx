import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test, vi } from 'vitest';
import type { Explained, ExplainField, ExplainGroups } from '../api/index.ts';
import { overview } from '../test/fixtures/run.ts';
import { renderIn, serve } from '../test/render.tsx';
import { BoxSelect, type Box } from './BoxSelect.tsx';
import { ExplainDrawer } from './ExplainDrawer.tsx';
import { mostCorners, outline, type Spot } from './lasso.ts';
import { LassoSelect } from './LassoSelect.tsx';
import {
  onlyThese,
  readSelection,
  released,
  selectionOf,
  withoutThese,
  writeSelection,
} from './selection.ts';

function field(f: Partial<ExplainField>): ExplainField {
  return {
    kind: 'host',
    name: 'host',
    key: 'host',
    terms: ['host=node02'],
    role: 'cause',
    values: 'node02',
    labels: ['node02'],
    numbers: [],
    with: 98,
    of: 98,
    baseline_share: 0.25,
    rest: '4 of 16 ranks',
    support: '98 of 98 here, 4 of 16 ranks; strong; not chance',
    bits: 0.51,
    chance: 1e-20,
    notable: true,
    bars: [
      { label: 'node02', share: 1, baseline_share: 0.25, telling: true },
      { label: 'node00', share: 0, baseline_share: 0.25, telling: false },
    ],
    ...f,
  };
}

function explained(e: Partial<Explained> = {}): Explained {
  return {
    sentence: 'All 98 executions of f ran on node02, which has 4 of 16 ranks',
    selected: 98,
    lost_us: 5_464_824,
    reckoned: false,
    looked: 98,
    typical: 4,
    others: 0,
    functions: [{ program: 0, function: 'f', term: 'function=f', executions: 98 }],
    fields: [
      field({}),
      field({
        kind: 'rank',
        name: 'rank',
        key: 'rank',
        terms: ['rank=1', 'rank=2'],
        with: 40,
        values: '1 and 2',
        labels: [],
        numbers: [1, 2],
        support: '40 of 98 here, 2 of 16 ranks; weak; possibly chance',
        notable: false,
      }),
      field({
        kind: 'time',
        name: 'time',
        key: 'time',
        terms: ['time=9.03..13.25'],
        with: 90,
        role: 'when',
        values: '9.03 s to 13.25 s',
        labels: [],
        from: 9.03,
        to: 13.25,
      }),
      // Nothing can be chosen by it.
      field({
        kind: 'node-state',
        name: '<b>memory</b>',
        key: 'node-state:<b>memory</b>',
        terms: [],
        values: '9 M or more',
        labels: [],
      }),
    ],
    command: 'chimbuko explain r --finding 1',
    ...e,
  };
}

function show(hash: string, e: Explained | null = explained()) {
  location.hash = hash;
  const requests = serve(e ? { explain: { body: e } } : {});
  renderIn({ overview: overview(8) }, <ExplainDrawer />);
  return requests;
}

describe('a selection', () => {
  test('survives encoding and decoding', () => {
    const s = { finding: 'aaaa', rank: '0,4-7', from: '1.5', to: '2', min_us: '10' };
    expect(readSelection(writeSelection(s))).toEqual(s);
    expect(readSelection(writeSelection({}))).toEqual({});
    expect(readSelection(undefined)).toBeUndefined();
    expect(readSelection('odd=1&rank=3')).toEqual({ rank: '3' });
  });

  test('defaults to the open finding, then the filters, then the worst finding', () => {
    const worst = overview(8).findings[0]?.key;
    const route = (view: 'overview' | 'findings', query: Record<string, string>) => ({
      view,
      event: '',
      query,
    });
    const words = (r: ReturnType<typeof route>) => writeSelection(selectionOf(r, overview(8)));
    expect(words(route('findings', { sel: 'k', t0: '1' }))).toBe('finding=k&from=1');
    expect(words(route('overview', { host: 'node01' }))).toBe('host=node01');
    expect(words(route('overview', {}))).toBe(`finding=${worst ?? ''}`);
  });

  test('replaces terms of the same field', () => {
    const s = onlyThese({ finding: 'aaaa', only: ['rank=1', 'host=a'] }, 'rank', ['rank=3..4']);
    expect(s.only).toEqual(['host=a', 'rank=3..4']);
    const w = withoutThese(withoutThese(s, ['rank=3', 'rank=4']), ['rank=4']);
    expect(w.without).toEqual(['rank=3', 'rank=4']);
    expect(readSelection(writeSelection(w))).toEqual(w);
    expect(released(w, 'without', 'rank=3').without).toEqual(['rank=4']);
  });
});

describe('lasso', () => {
  const circle = (n: number, r = 0.3) =>
    Array.from({ length: n }, (_, i) => ({
      x: 0.5 + r * Math.cos((2 * Math.PI * i) / n),
      y: 0.5 + r * Math.sin((2 * Math.PI * i) / n),
    }));

  test('has few corners and keeps its position', () => {
    const corners = outline(circle(3000));
    expect(corners.length).toBeGreaterThan(8);
    expect(corners.length).toBeLessThanOrEqual(mostCorners);
    for (const c of corners) expect(Math.hypot(c.x - 0.5, c.y - 0.5)).toBeCloseTo(0.3, 6);
    const square = [0, 1, 2, 3, 4].flatMap((side) =>
      Array.from({ length: 50 }, (_, i) => {
        const along = 0.2 + (0.6 * i) / 50;
        return (
          [
            { x: along, y: 0.2 },
            { x: 0.8, y: along },
            { x: 1 - along, y: 0.8 },
            { x: 0.2, y: 1 - along },
            { x: 0.2, y: 0.2 },
          ][side] ?? { x: 0, y: 0 }
        );
      }),
    );
    expect(outline(square)).toHaveLength(4);
  });

  test('is empty around nothing', () => {
    expect(outline([])).toEqual([]);
    expect(outline([{ x: 0.5, y: 0.5 }])).toEqual([]);
    expect(outline(circle(20, 0.001))).toEqual([]);
  });

  test('limits the corners of random paths', () => {
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let n = 0; n < 50; n++) {
      const wild = Array.from({ length: 200 }, () => ({ x: random(), y: random() }));
      expect(outline(wild).length).toBeLessThanOrEqual(mostCorners);
    }
  });

  test('reports corners from the top left and ignores clicks', () => {
    const drawn: Spot[][] = [];
    renderIn(
      {},
      <LassoSelect
        label="around"
        inset={{ left: 0, right: 0, top: 0, bottom: 0 }}
        onLasso={(corners) => drawn.push(corners)}
      />,
    );
    const sheet = screen.getByRole('img', { name: 'around' });
    sheet.getBoundingClientRect = () => new DOMRect(0, 0, 100, 50);
    sheet.setPointerCapture = vi.fn();
    const at = (x: number, y: number) => ({ clientX: x, clientY: y, button: 0, pointerId: 1 });
    fireEvent.pointerDown(sheet, at(20, 10));
    fireEvent.pointerMove(sheet, at(80, 10));
    fireEvent.pointerMove(sheet, at(80, 40));
    fireEvent.pointerUp(sheet, at(80, 40));
    fireEvent.pointerDown(sheet, at(80, 40));
    fireEvent.pointerUp(sheet, at(80, 40));
    expect(drawn).toEqual([
      [
        { x: 0.2, y: 0.2 },
        { x: 0.8, y: 0.2 },
        { x: 0.8, y: 0.8 },
      ],
    ]);
  });
});

describe('the drawer', () => {
  test('is closed without a selection', () => {
    const requests = show('#/overview');
    expect(screen.queryByRole('dialog')).toBeNull();
    expect(requests).toEqual([]);
  });

  test('explains the selection with a sentence and ordered fields', async () => {
    const requests = show('#/findings?explain=finding%3Daaaa%26from%3D1');
    await screen.findByText(/All 98 executions of f ran on node02/);
    expect(requests[0]?.path).toBe('api/v1/runs/r/explain?finding=aaaa&from=1');
    expect(screen.getAllByRole('heading', { level: 3 }).map((h) => h.textContent)).toEqual([
      'host',
      'rank',
      'time',
      '<b>memory</b>',
    ]);
    expect(screen.getByText('chimbuko explain r --finding 1')).toBeTruthy();
    expect(screen.getAllByText(/possibly chance/)).toHaveLength(1);
    expect(screen.getAllByRole('img')[0]?.getAttribute('aria-label')).toContain(
      'node02: 100 % here, 25 % elsewhere',
    );
  });

  test('links to filters, groups and findings of each field', async () => {
    show('#/findings?explain=finding%3Daaaa&sel=aaaa');
    await screen.findByText(/All 98/);
    const links = screen
      .getAllByRole('link')
      .map((a) => [a.textContent, decodeURIComponent(a.getAttribute('href') ?? '')]);
    expect(links).toEqual([
      ['Group by host', '#/findings?explain=finding=aaaa&by=host&sel=aaaa'],
      ['Show findings', '#/findings?host=node02&sel=aaaa'],
      ['Only these', '#/findings?explain=finding=aaaa&only=rank%3D1&only=rank%3D2&sel=aaaa'],
      [
        'Without these',
        '#/findings?explain=finding=aaaa&without=rank%3D1&without=rank%3D2&sel=aaaa',
      ],
      ['Group by rank', '#/findings?explain=finding=aaaa&by=rank&sel=aaaa'],
      ['Show findings', '#/findings?rank=1,2&sel=aaaa'],
      ['Only these', '#/findings?explain=finding=aaaa&only=time%3D9.03..13.25&sel=aaaa'],
      ['Without these', '#/findings?explain=finding=aaaa&without=time%3D9.03..13.25&sel=aaaa'],
      ['Group by time', '#/findings?explain=finding=aaaa&by=time&sel=aaaa'],
      ['Show findings', '#/findings?sel=aaaa&t0=9.03&t1=13.25'],
    ]);
    // All of them are on the host: only that one changes nothing.
    expect(screen.getAllByRole('button', { name: 'Only these' })).toHaveLength(1);
    expect(screen.getByTitle('all executions match')).toHaveProperty('disabled', true);
  });

  test('applies and removes conditions', async () => {
    const requests = show(
      `#/findings?explain=${encodeURIComponent(writeSelection({ finding: 'aaaa', lasso: '1:2,3:4,5:6', only: ['rank=1', 'rank=2'], without: ['host=a&b'] }))}`,
    );
    await screen.findByText(/All 98/);
    expect(requests[0]?.path).toBe(
      'api/v1/runs/r/explain?finding=aaaa&lasso=1%3A2%2C3%3A4%2C5%3A6&only=rank%3D1&only=rank%3D2&without=host%3Da%26b',
    );
    const chips = () => screen.getAllByRole('button', { name: /: remove$/ });
    expect(chips().map((c) => c.getAttribute('aria-label'))).toEqual([
      'inside the lasso: remove',
      'only rank=1: remove',
      'only rank=2: remove',
      'without host=a&b: remove',
    ]);
    const firstChip = () =>
      screen.getAllByRole('button', { name: /: remove$/ })[0] ?? document.body;
    for (let n = 4; n > 1; n--) {
      await userEvent.click(firstChip());
      await waitFor(() => expect(chips()).toHaveLength(n - 1));
    }
    await userEvent.click(firstChip());
    await waitFor(() => expect(location.hash).toBe('#/findings?explain=finding%3Daaaa'));
  });

  test('lists several functions with links and groups by them', async () => {
    show(
      '#/overview?explain=rank%3D8-11',
      explained({
        functions: [
          { program: 0, function: 'f(int)', term: 'function=f(int)', executions: 60 },
          { program: 0, function: '', term: '', executions: 38 },
        ],
      }),
    );
    const only = await screen.findByRole('link', { name: 'f(int)' });
    expect(decodeURIComponent(only.getAttribute('href') ?? '')).toBe(
      '#/overview?explain=rank=8-11&only=function%3Df%28int%29',
    );
    const group = screen.getByRole('link', { name: 'Group by function' });
    expect(group.getAttribute('aria-expanded')).toBe('false');
    expect(group.getAttribute('href')).toBe('#/overview?explain=rank%3D8-11%26by%3Dfunction');
  });

  test('groups the selection with links to each group', async () => {
    const group = (label: string, executions: number, lost: number, term = '') => ({
      label,
      term,
      executions,
      lost_us: lost,
    });
    location.hash = '#/findings?explain=finding%3Daaaa%26by%3Drank';
    const requests = serve({
      explain: { body: explained() },
      'explain/groups': {
        body: {
          field: 'rank',
          name: 'rank',
          selected: 98,
          lost_us: 1000,
          reckoned: false,
          looked: 90,
          rows: [group('5', 60, 600_000, 'rank=5'), group('2', 20, 200_000, 'rank=2')],
          ranges: false,
          values: 7,
          rest: group('', 8, 9000),
          none: group('', 2, 500),
          command: 'x',
        } satisfies ExplainGroups,
      },
    });
    renderIn({ overview: overview(8) }, <ExplainDrawer />);
    const table = await screen.findByRole('table', { name: 'The selection by rank' });
    const rows = within(table).getAllByRole('row');
    expect(rows.map((r) => r.textContent.replaceAll('\u202f', ' '))).toEqual([
      'rankanomalieslost',
      '560600 msonlywithout',
      '220200 msonlywithout',
      '5 more values89.00 ms',
      'no value2500 µs',
    ]);
    expect(
      decodeURIComponent(
        within(table).getByRole('link', { name: 'without rank 2' }).getAttribute('href') ?? '',
      ),
    ).toBe('#/findings?explain=finding=aaaa&by=rank&without=rank%3D2');
    expect(within(table).getByText(/of 98 executions 90 were looked at/)).toBeTruthy();
    expect(requests.map((r) => r.path)).toContain(
      'api/v1/runs/r/explain/groups?finding=aaaa&by=rank',
    );
  });

  test('reports an empty selection', async () => {
    show('#/overview?explain=host%3Dx', explained({ selected: 0, looked: 0, fields: [] }));
    expect(await screen.findByText('No anomalies in the selection.')).toBeTruthy();
  });

  test('reports sampling', async () => {
    show('#/overview?explain=all', explained({ selected: 5000, looked: 2000 }));
    expect(await screen.findByText(/2.?000 sampled/)).toBeTruthy();
  });

  test('shows errors', async () => {
    show('#/overview?explain=finding%3Dgone', null);
    expect(await screen.findByRole('alert')).toBeTruthy();
  });

  test('closes and removes the selection from the address', async () => {
    show('#/overview?explain=all&t0=1');
    await userEvent.click(await screen.findByRole('button', { name: /Close/ }));
    await waitFor(() => expect(location.hash).toBe('#/overview?t0=1'));
  });
});

test('a box is reported as fractions from the top left, and clicks are ignored', () => {
  const boxes: Box[] = [];
  renderIn(
    {},
    <BoxSelect
      label="draw"
      inset={{ left: 0, right: 0, top: 0, bottom: 0 }}
      onBox={(b) => boxes.push(b)}
    />,
  );
  const sheet = screen.getByRole('img', { name: 'draw' });
  sheet.getBoundingClientRect = () => new DOMRect(0, 0, 100, 50);
  sheet.setPointerCapture = vi.fn();
  const at = (x: number, y: number) => ({ clientX: x, clientY: y, button: 0, pointerId: 1 });
  fireEvent.pointerDown(sheet, at(80, 40));
  fireEvent.pointerMove(sheet, at(20, 10));
  fireEvent.pointerUp(sheet, at(20, 10));
  fireEvent.pointerDown(sheet, at(80, 40));
  fireEvent.pointerUp(sheet, at(80, 40));
  expect(boxes).toEqual([{ x0: 0.2, x1: 0.8, y0: 0.2, y1: 0.8 }]);
});
