import { cleanup, fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview } from '../../test/fixtures/run.ts';
import { counterTimeline, timeline } from '../../test/fixtures/timeline.ts';
import { renderIn, serve } from '../../test/render.tsx';
import { cell, cellsOf, marksOf, pan, pixels, rowOf, rowRanks, zoom } from './activity.ts';
import { square } from './Messages.tsx';
import { areaPath, columnsIn, linePath, nearest, rangeOf, unitOf, valueText } from './series.ts';
import TimelineView from './TimelineView.tsx';

beforeEach(() => {
  HTMLCanvasElement.prototype.getContext = () => null; // there is nothing to draw on here
  vi.spyOn(Element.prototype, 'clientWidth', 'get').mockReturnValue(1000);
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

function show(hash = '#/timeline', body: unknown = timeline(), live = false) {
  location.hash = hash;
  const event = {
    event_id: '3:1:7',
    at_s: 5,
    inclusive_us: 2e5,
    program: 0,
    rank: 3,
    kind: 'slow',
  };
  const requests = serve({
    timeline: { body },
    'timeline/counters': { body: counterTimeline() },
    events: { body: { rows: [event] } },
  });
  renderIn({ overview: overview(8, { live }) }, <TimelineView />);
  return requests;
}

describe('the timeline of all ranks', () => {
  test('has a table with the same rows, and the messages', async () => {
    show();
    const grid = await screen.findByRole('grid', { name: /Shares of activities/ });
    const rows = within(grid).getAllByRole('row').slice(1);
    expect(rows).toHaveLength(8);
    expect(rows[0]?.textContent).toMatch(/rank 0.*node00.*60 %.*40 %/);
    expect(rows[2]?.textContent).toMatch(/rank 2.*100 %.*0 %/);
    const pairs = screen.getByRole('grid', { name: 'Messages between ranks' });
    expect(within(pairs).getAllByRole('row')[1]?.textContent).toMatch(/7017/);
  });

  test('is readable by keyboard, zooms, and opens what is stored', async () => {
    const requests = show();
    const box = await screen.findByRole('application', { name: /Timeline of 8 ranks/ });
    await vi.waitFor(() => expect(requests.some((r) => r.path.includes('events?'))).toBe(true));
    box.focus();
    for (let i = 0; i < 3; i++) await userEvent.keyboard('{ArrowDown}');
    for (let i = 0; i < 5; i++) await userEvent.keyboard('{ArrowRight}');
    expect(box.textContent).toMatch(/rank 3.*mostly own code \(100 %\)/);
    await userEvent.keyboard('{Enter}');
    await vi.waitFor(() => expect(location.hash).toContain('#/e/0:3:1:7'));
  });

  test('writes the zoomed time to the address', async () => {
    show();
    const box = await screen.findByRole('application', { name: /Timeline/ });
    box.focus();
    await userEvent.keyboard('+');
    await vi.waitFor(() => expect(location.hash).toMatch(/t0=0&t1=5/));
    await userEvent.click(screen.getByRole('button', { name: 'Show everything' }));
    expect(location.hash).toBe('#/timeline');
  });

  test('zooms by the wheel, with Shift the ranks', async () => {
    show();
    const box = await screen.findByRole('application', { name: /Timeline/ });
    fireEvent.wheel(box, { deltaY: -200, shiftKey: true });
    await vi.waitFor(() => expect(location.hash).toContain('rank=0-3'));
  });

  test('shows a counter over time, which follows the zoom', async () => {
    const requests = show('#/timeline?rank=2&t0=2&t1=6');
    const strip = await screen.findByRole('application', { name: /Heap \(KB\) over time.*rank 2/ });
    strip.focus();
    await userEvent.keyboard('{ArrowRight}');
    expect(strip.textContent).toMatch(
      /2.000 s to 3.000 s, all ranks 200 to 280, mean 240 KB, rank 2 220 to 220, mean 220 KB/,
    );
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Counter' }), '0:sent');
    await vi.waitFor(() =>
      expect(requests.some((r) => r.path.includes('counter=sent'))).toBe(true),
    );
    expect(location.hash).toContain('counter=0:sent');
  });

  test('says that an old run has none', async () => {
    show('#/timeline', { ...timeline(0), recorded: false, rows: [] });
    expect(await screen.findByText('Not recorded.')).toBeTruthy();
    expect(screen.getByText(/analyze its traces again/)).toBeTruthy();
  });
});

describe('cells', () => {
  test('have a class, a share and a color', () => {
    const all = cellsOf(timeline());
    expect(all).toHaveLength(80);
    expect(cell(all[0] ?? 0)).toEqual({ class: 1, share: 1 });
    const out = pixels(
      new Uint8Array([0, 1 | (31 << 3), 2]),
      [
        [0, 0, 0],
        [1, 2, 3],
        [4, 5, 6],
      ],
      0.4,
    );
    expect([...out]).toEqual([0, 0, 0, 0, 1, 2, 3, 255, 4, 5, 6, 102]);
  });

  test('are found by rank', () => {
    const { rows } = timeline(8);
    expect(rowOf(rows, 0, 5)).toBe(5);
    expect(rowOf(rows, 0, 8)).toBe(-1);
    expect(rowOf(rows, 1, 0)).toBe(-1);
    expect(rowRanks(rows.slice(2, 4))).toBe('2-3');
  });

  test('findings cover neighboring rows together', () => {
    const [finding] = overview(8).findings;
    if (!finding) throw new Error('no finding');
    const marks = marksOf(
      [{ ...finding, program: 0, ranks: [5, 1, 2], from_s: 2, to_s: null }],
      timeline(8).rows,
      10,
    );
    expect(marks.map((m) => [m.r0, m.r1, m.t0, m.t1])).toEqual([
      [1, 3, 2, 10],
      [5, 6, 2, 10],
    ]);
  });
});

describe('zooming', () => {
  const limit = { t0: 0, t1: 100, r0: 0, r1: 10 };
  test('keeps the point and the limits', () => {
    const half = zoom(limit, limit, 1, { t: 25, r: 5 }, { t: 0.5, r: 1 });
    expect(half).toEqual({ t0: 12.5, t1: 62.5, r0: 0, r1: 10 });
    expect(zoom(half, limit, 1, { t: 60, r: 5 }, { t: 8, r: 8 })).toEqual(limit);
    const least = zoom(limit, limit, 1, { t: 0, r: 0 }, { t: 1e-9, r: 1e-9 });
    expect(least).toEqual({ t0: 0, t1: 1, r0: 0, r1: 1 });
    expect(pan(half, limit, { t: 1000, r: 3 })).toEqual({ t0: 50, t1: 100, r0: 0, r1: 10 });
  });

  test('messages form a square', () => {
    const m = timeline(8).messages[0];
    if (!m) throw new Error('no messages');
    const s = square(m, 'bytes');
    expect(s.size).toBe(8);
    expect(s.cells[7]).toEqual({ x: 0, y: 7, share: 1 });
    const most = Math.max(...m.pairs.map((p) => p.bytes));
    const linear = square(m, 'bytes', 'linear').cells.map((c) => c.share);
    expect(linear).toEqual(m.pairs.map((p) => p.bytes / most));
  });
});

describe('counters', () => {
  const of = counterTimeline();
  const at = { x: (c: number) => c * 10, y: (v: number) => -v };
  test('have the columns and values of a part', () => {
    expect(columnsIn(of, { t0: 2, t1: 6 })).toEqual([2, 6]);
    expect(columnsIn(of, { t0: -5, t1: 50 })).toEqual([0, 10]);
    expect(rangeOf([of.all.min, of.all.max], [2, 6])).toEqual([200, 580]);
    expect(rangeOf([[5, 5, null]], [0, 3])).toEqual([4, 6]);
    expect(rangeOf([[null, 1]], [0, 1])).toBeUndefined();
  });

  test('bridge columns without readings, and continue beyond the part', () => {
    expect(linePath([1, null, 3, null, 5], [0, 5], at)).toBe('M5 -1L25 -3L45 -5');
    expect(linePath([1, null, 3, null, 5], [1, 3], at)).toBe('M5 -1L25 -3L45 -5');
    expect(areaPath([1, 2], [3, 4], [0, 2], at)).toBe('M5 -3L15 -4L15 -2L5 -1Z');
    expect(areaPath([null], [null], [0, 1], at)).toBe('');
  });

  test('are read at the nearest reading', () => {
    expect(nearest([null, 2, null, null, 5], [0, 5], 2)).toBe(1);
    expect(nearest([null, 2, null, null, 5], [2, 5], 2)).toBe(4);
    expect(nearest([null, 2], [0, 1], 0)).toBeUndefined();
  });

  test('have units', () => {
    expect(unitOf('monitoring: Memory Footprint (VmRSS) (KB)')).toBe('KB');
    expect(unitOf('cpu: User %')).toBe('%');
    expect(unitOf('Threads')).toBe('');
    expect(valueText(39881.9, 'KB')).toBe('39,882 KB');
    expect(valueText(0.333333, '%')).toBe('0.3333 %');
    expect(valueText(null, '%')).toBe('no reading');
  });
});
