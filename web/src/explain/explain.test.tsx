import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test, vi } from 'vitest';
import type { Explained, ExplainField } from '../api/index.ts';
import { overview } from '../test/fixtures/run.ts';
import { renderIn, serve } from '../test/render.tsx';
import { BoxSelect, type Box } from './BoxSelect.tsx';
import { ExplainDrawer } from './ExplainDrawer.tsx';
import { otherRanks, readSelection, selectionOf, writeSelection } from './selection.ts';

function field(f: Partial<ExplainField>): ExplainField {
  return {
    kind: 'host',
    name: 'host',
    role: 'cause',
    values: 'node02',
    labels: ['node02'],
    numbers: [],
    with: 98,
    of: 98,
    baseline_share: 0.25,
    rest: '4 of 16 ranks',
    support: '98 of 98 here, 4 of 16 ranks; 0.51 bits of 1, chance < 1e-12',
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
    looked: 98,
    typical: 4,
    others: 0,
    functions: [{ program: 0, function: 'f', executions: 98 }],
    fields: [
      field({}),
      field({
        kind: 'rank',
        name: 'rank',
        values: '1 and 2',
        labels: [],
        numbers: [1, 2],
        notable: false,
      }),
      field({
        kind: 'time',
        name: 'time',
        role: 'when',
        values: '9.03 s to 13.25 s',
        labels: [],
        from: 9.03,
        to: 13.25,
      }),
      field({ kind: 'node-state', name: '<b>memory</b>', values: '9 M or more', labels: [] }),
    ],
    command: 'chimbuko explain r --issue 1',
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
  test('is the same after it was written to the address and read from it', () => {
    const s = { issue: 'aaaa', rank: '0,4-7', from: '1.5', to: '2', min_us: '10' };
    expect(readSelection(writeSelection(s))).toEqual(s);
    expect(readSelection(writeSelection({}))).toEqual({});
    expect(readSelection(undefined)).toBeUndefined();
    expect(readSelection('odd=1&rank=3')).toEqual({ rank: '3' });
  });

  test('without a box is the open issue, then what the address narrows to, then the worst issue', () => {
    const worst = overview(8).issues[0]?.key;
    const route = (view: 'overview' | 'issues', query: Record<string, string>) => ({
      view,
      event: '',
      query,
    });
    const words = (r: ReturnType<typeof route>) => writeSelection(selectionOf(r, overview(8)));
    expect(words(route('issues', { sel: 'k', t0: '1' }))).toBe('issue=k&from=1');
    expect(words(route('overview', { host: 'node01' }))).toBe('host=node01');
    expect(words(route('overview', {}))).toBe(`issue=${worst ?? ''}`);
  });

  test('of all ranks but some is written in ranges', () => {
    expect(otherRanks([1, 2], 8)).toBe('0,3-7');
    expect(otherRanks([0], 1)).toBe('');
  });
});

describe('the drawer', () => {
  test('is closed while the address names nothing to explain', () => {
    const requests = show('#/overview');
    expect(screen.queryByRole('dialog')).toBeNull();
    expect(requests).toEqual([]);
  });

  test('asks for what the address names, and has the sentence and the fields in order', async () => {
    const requests = show('#/issues?explain=issue%3Daaaa%26from%3D1');
    await screen.findByText(/All 98 executions of f ran on node02/);
    expect(requests[0]?.path).toBe('api/v1/runs/r/explain?issue=aaaa&from=1');
    expect(screen.getAllByRole('heading', { level: 3 }).map((h) => h.textContent)).toEqual([
      'host',
      'rank',
      'time',
      '<b>memory</b>',
    ]);
    expect(screen.getByText('chimbuko explain r --issue 1')).toBeTruthy();
    expect(screen.getAllByText(/that may be chance/)).toHaveLength(1);
    expect(screen.getAllByRole('img')[0]?.getAttribute('aria-label')).toContain(
      'node02: 100 % here, 25 % elsewhere',
    );
  });

  test('has links that filter, exclude and group, as far as the address can', async () => {
    show('#/issues?explain=issue%3Daaaa&sel=aaaa');
    await screen.findByText(/All 98/);
    const hrefs = screen.getAllByRole('link').map((a) => [a.textContent, a.getAttribute('href')]);
    expect(hrefs).toEqual([
      ['Filter', '#/issues?host=node02&sel=aaaa'],
      ['Group by host', '#/issues?by=host&sel=aaaa'],
      ['Filter', '#/issues?rank=1,2&sel=aaaa'],
      ['Exclude', '#/issues?rank=0,3-7&sel=aaaa'],
      ['Group by rank', '#/issues?by=rank&sel=aaaa'],
      ['Filter', '#/issues?sel=aaaa&t0=9.03&t1=13.25'],
    ]);
  });

  test('says when nothing is in the selection', async () => {
    show('#/overview?explain=host%3Dx', explained({ selected: 0, looked: 0, fields: [] }));
    expect(await screen.findByText('No anomaly is in the selection.')).toBeTruthy();
  });

  test('says when only some were looked at', async () => {
    show('#/overview?explain=all', explained({ selected: 5000, looked: 2000 }));
    expect(await screen.findByText(/2.?000 of them looked at/)).toBeTruthy();
  });

  test('shows what went wrong', async () => {
    show('#/overview?explain=issue%3Dgone', null);
    expect(await screen.findByRole('alert')).toBeTruthy();
  });

  test('closes, and the address no longer names it', async () => {
    show('#/overview?explain=all&t0=1');
    await userEvent.click(await screen.findByRole('button', { name: /Close/ }));
    await waitFor(() => expect(location.hash).toBe('#/overview?t0=1'));
  });
});

test('a box is told as shares from the left and the top, a click is none', () => {
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
