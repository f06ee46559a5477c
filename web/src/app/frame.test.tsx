import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Problem } from '../api/index.ts';
import type { Session } from '../api/index.ts';
import { finding, findingList } from '../test/fixtures/findings.ts';
import { heatmap, overview, status } from '../test/fixtures/run.ts';
import { renderIn, serve } from '../test/render.tsx';
import { parse } from '../route/index.ts';
import { Frame } from './App.tsx';
import { commands } from './commands.ts';
import { readViews } from './savedViews.ts';

beforeEach(() => {
  serve({
    heatmap: { body: heatmap(8) },
    findings: { body: findingList(8) },
    pipeline: { body: status(8) },
    search: {
      body: { rows: [{ kind: 'function', text: 'pack_halo()', route: '/functions?sel=0:13' }] },
    },
  });
});

function show(part: Partial<Session> = {}) {
  return renderIn({ overview: overview(8), going: true, ...part }, <Frame />);
}

describe('the frame', () => {
  test('opens the views with their keys, and the comparison with c', async () => {
    show();
    for (const [key, hash] of [
      ['2', '#/findings'],
      ['5', '#/pipeline'],
      ['6', '#/compare'],
      ['7', '#/ranks'],
      ['9', '#/timeline'],
      ['1', '#/overview'],
      ['c', '#/compare'],
    ] as const) {
      await userEvent.keyboard(key);
      expect(location.hash).toBe(hash);
    }
    expect(within(screen.getByRole('navigation')).getAllByRole('listitem')).toHaveLength(8);
  });

  test('shows run, state and time since the start', () => {
    show();
    const [bar] = screen.getAllByRole('banner'); // the others are of sections
    expect(bar?.textContent).toContain('heat2d');
    expect(bar?.textContent).toContain('LIVE');
    expect(bar?.textContent).toContain('00:33:20');
  });

  test('shows ENDED for a finished run, without a pause button', () => {
    show({ overview: overview(8, { live: false, state: 'finished' }), going: false });
    expect(screen.getByText('ENDED')).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'Pause' })).toBeNull();
  });

  test('shows INCOMPLETE for a finished run without some of its data', () => {
    const o = overview(8, { live: false, state: 'finished', incomplete: true });
    show({ overview: o, going: false });
    expect(screen.getByText('INCOMPLETE')).toBeTruthy();
    expect(screen.queryByText('ENDED')).toBeNull();
  });

  test('selects one of several programs', async () => {
    const programs = [
      { program: 0, name: 'sim', ranks: 4 },
      { program: 1, ranks: 2 },
    ];
    show({ overview: overview(8, { programs }) });
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Program' }), '1');
    expect(location.hash).toBe('#/overview?program=1');
  });

  test('shows and removes filters', async () => {
    location.hash = '#/overview?t0=860&t1=900&host=nid00123&rank=0-3';
    show();
    await userEvent.click(screen.getByRole('button', { name: /^host nid00123/ }));
    expect(location.hash).toBe('#/overview?rank=0-3&t0=860&t1=900');
    await userEvent.click(screen.getByRole('button', { name: /00:14:20.* to .*remove/ }));
    expect(location.hash).toBe('#/overview?rank=0-3');
  });

  test('counts the findings that each filter leaves', async () => {
    const rows = [
      finding({ finding: 1, key: 'a', hosts: ['a'], ranks: [0] }),
      finding({ finding: 2, key: 'b', hosts: ['a'], ranks: [1] }),
      finding({ finding: 3, key: 'c', hosts: ['b'], ranks: [1] }),
      finding({ finding: 4, key: 'd', hosts: ['a'], ranks: [1], status: 'withdrawn' }),
    ];
    serve({
      heatmap: { body: heatmap(8) },
      findings: { body: { ...findingList(8), rows, total: rows.length } },
    });
    location.hash = '#/overview?host=a&rank=1';
    show();
    const chip = (name: RegExp) => screen.findByRole('button', { name });
    expect((await chip(/^host a, 1 of 2 findings: remove$/)).textContent).toContain('1 of 2');
    await userEvent.click(await chip(/^rank 1, 1 of 2 findings: remove$/));
    await chip(/^host a, 2 of 3 findings: remove$/);
  });

  test('shows keyboard shortcuts with ?', async () => {
    show();
    await userEvent.keyboard('?');
    const sheet = screen.getByRole('dialog', { name: 'Keyboard shortcuts', hidden: true });
    expect(sheet.textContent).toContain('pause or resume updates');
    fireEvent(sheet, new Event('cancel'));
    expect(screen.queryByRole('dialog', { hidden: true })).toBeNull();
  });

  test('switches and remembers the theme', async () => {
    show();
    await userEvent.click(screen.getByRole('button', { name: 'Light theme' }));
    expect(document.documentElement.dataset.theme).toBe('light');
    expect(localStorage.getItem('chimbuko.theme')).toBe('light');
  });
});

describe('the search', () => {
  test('focuses with /, lists matches and opens them', async () => {
    location.hash = '#/overview?run=r&sel=x';
    show();
    await userEvent.keyboard('/');
    expect(document.activeElement?.id).toBe('search');
    await userEvent.keyboard('halo');
    await screen.findByRole('option', { name: /pack_halo/ });
    await userEvent.keyboard('{Enter}');
    expect(location.hash).toBe('#/functions?run=r&sel=0:13');
  });

  test('reports no matches', async () => {
    serve({ search: { body: { rows: [] } }, heatmap: { body: heatmap(8) } });
    show();
    await userEvent.type(screen.getByRole('combobox', { name: /Search/ }), 'zzz');
    expect(await screen.findByText(/No matches/)).toBeTruthy();
  });
});

describe('the brush', () => {
  function drag(from: number, to: number) {
    const brush = screen.getByRole('slider', { name: 'Time range' });
    brush.setPointerCapture = vi.fn();
    brush.getBoundingClientRect = () => ({ left: 0, width: 1000 }) as DOMRect;
    fireEvent.pointerDown(brush, { clientX: from, pointerId: 1 });
    fireEvent.pointerMove(brush, { clientX: to, pointerId: 1 });
    fireEvent.pointerUp(brush, { clientX: to, pointerId: 1 });
  }

  test('selects a time range in either direction, and a click resets it', () => {
    show();
    drag(750, 500);
    expect(location.hash).toBe('#/overview?t0=1000&t1=1500');
    drag(200, 201);
    expect(location.hash).toBe('#/overview');
  });

  test('moves with the arrow keys', async () => {
    location.hash = '#/overview?t0=500&t1=1000';
    show();
    act(() => screen.getByRole('slider').focus());
    await userEvent.keyboard('{ArrowRight}');
    expect(location.hash).toBe('#/overview?t0=600&t1=1100');
  });
});

describe('the connection state', () => {
  test('shows the age of the data when cut, and keeps the content', () => {
    const now = Date.now();
    const clock = vi.spyOn(Date, 'now').mockReturnValue(now);
    show({ link: 'cut', heard: now - 12_000 });
    clock.mockRestore();
    expect(screen.getByText('reconnecting, data as of 12 s ago')).toBeTruthy();
    expect(screen.getByRole('heading', { level: 1 })).toBeTruthy();
  });

  test('shows errors of the server', () => {
    show({ trouble: 'the disk is full; make room' });
    expect(screen.getByText('server error: the disk is full; make room')).toBeTruthy();
  });

  test('shows the problem and the hint when the server is unreachable', () => {
    show({
      overview: undefined,
      problem: new Problem('cannot reach the server', 'check that chimbuko is running'),
    });
    expect(screen.getByRole('alert').textContent).toBe(
      'Cannot reach the server.Check that chimbuko is running.',
    );
  });

  test('shows gray bars while loading', () => {
    show({ overview: undefined });
    expect(screen.getByRole('status', { name: 'loading the overview' })).toBeTruthy();
  });

  test('counts new anomalies while paused', async () => {
    const pause = vi.fn();
    show({ paused: true, missed: 12_400, pause });
    await userEvent.click(screen.getByRole('button', { name: /\+12.400 new — resume/ }));
    expect(pause).toHaveBeenCalledWith(false);
  });
});

test('keeps the frame and the navigation when a view fails', async () => {
  const noise = vi.spyOn(console, 'error').mockReturnValue(undefined);
  show({ overview: { ...overview(8), figures: null as never } });
  await waitFor(() => expect(screen.getByText('Cannot draw this view.')).toBeTruthy());
  expect(screen.getByRole('navigation')).toBeTruthy();
  noise.mockRestore();
});

describe('sharing', () => {
  test('copies the commands that show a colleague the same part', async () => {
    location.hash = '#/e/0:1:27:7044';
    show({ overview: overview(8, { place: '/runs/my run', host: 'login3' }) });
    const user = userEvent.setup();
    const write = vi.spyOn(navigator.clipboard, 'writeText').mockResolvedValue();
    await user.click(screen.getByText('Share'));
    await user.click(screen.getByRole('button', { name: 'Copy for a colleague', hidden: true }));
    const text = write.mock.calls[0]?.[0] ?? '';
    expect(text.split('\n')[0]).toBe("chimbuko view '/runs/my run' --event 0:1:27:7044");
    await screen.findByText('Commands copied');
  });

  test('gives the ssh line with the port of the page', () => {
    const route = parse('#/findings?sel=7446d81c&sort=-lost');
    const view = "chimbuko view /runs/r --at 'findings?sel=7446d81c&sort=-lost'";
    expect(commands(route, overview(8, { place: '/runs/r', host: 'login3' }), '23456')).toEqual([
      view,
      `ssh -t -L 23456:localhost:23456 login3 '${view.replaceAll("'", "'\\''")}'`,
    ]);
    expect(commands(parse('#/overview'), undefined, '')).toEqual(['chimbuko view RUN']);
  });

  test('saves a view with its filters, and opens it', async () => {
    location.hash = '#/findings?q=boris&run=r&sort=-count';
    show();
    await userEvent.click(screen.getByText('Views'));
    const name = screen.getByRole('textbox', { name: 'Name of the view', hidden: true });
    await userEvent.type(name, 'mine{Enter}');
    const link = screen.getByRole('link', { name: 'mine', hidden: true });
    expect(link.getAttribute('href')).toBe('#/findings?q=boris&run=r&sort=-count');
    expect(readViews()).toEqual([{ name: 'mine', at: '#/findings?q=boris&sort=-count' }]);
    const remove = screen.getByRole('button', { name: 'Delete view mine', hidden: true });
    await userEvent.click(remove);
    expect(readViews()).toEqual([]);
  });
});
