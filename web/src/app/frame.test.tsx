import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Problem } from '../api/index.ts';
import type { Session } from '../api/index.ts';
import { issueList } from '../test/fixtures/issues.ts';
import { heatmap, overview, status } from '../test/fixtures/run.ts';
import { renderIn, serve } from '../test/render.tsx';
import { Frame } from './App.tsx';

beforeEach(() => {
  serve({
    heatmap: { body: heatmap(8) },
    issues: { body: issueList(8) },
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
  test('leads to the six views with the keys 1 to 6, and c to what is compared', async () => {
    show();
    for (const [key, hash] of [
      ['2', '#/issues'],
      ['5', '#/pipeline'],
      ['6', '#/compare'],
      ['1', '#/overview'],
      ['c', '#/compare'],
    ] as const) {
      await userEvent.keyboard(key);
      expect(location.hash).toBe(hash);
    }
    expect(within(screen.getByRole('navigation')).getAllByRole('listitem')).toHaveLength(6);
  });

  test('tells run, state and the time since the begin', () => {
    show();
    const [bar] = screen.getAllByRole('banner'); // the others are of sections
    expect(bar?.textContent).toContain('heat2d');
    expect(bar?.textContent).toContain('LIVE');
    expect(bar?.textContent).toContain('00:33:20');
  });

  test('says ENDED of a finished run, and offers no pause', () => {
    show({ overview: overview(8, { live: false, state: 'finished' }), going: false });
    expect(screen.getByText('ENDED')).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'Pause' })).toBeNull();
  });

  test('chooses a program where there are several', async () => {
    const programs = [
      { program: 0, name: 'sim', ranks: 4 },
      { program: 1, ranks: 2 },
    ];
    show({ overview: overview(8, { programs }) });
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Program' }), '1');
    expect(location.hash).toBe('#/overview?program=1');
  });

  test('shows what everything is narrowed to, and takes it back', async () => {
    location.hash = '#/overview?t0=860&t1=900&host=nid00123&rank=0-3';
    show();
    await userEvent.click(screen.getByRole('button', { name: /^host nid00123/ }));
    expect(location.hash).toBe('#/overview?rank=0-3&t0=860&t1=900');
    await userEvent.click(screen.getByRole('button', { name: /00:14:20.* to .*remove/ }));
    expect(location.hash).toBe('#/overview?rank=0-3');
  });

  test('has a sheet of what the keys do behind ?', async () => {
    show();
    await userEvent.keyboard('?');
    const sheet = screen.getByRole('dialog', { name: 'Keys', hidden: true });
    expect(sheet.textContent).toContain('freeze the picture');
    fireEvent(sheet, new Event('cancel'));
    expect(screen.queryByRole('dialog', { hidden: true })).toBeNull();
  });

  test('is dark or light as the reader wants, and remembers', async () => {
    show();
    await userEvent.click(screen.getByRole('button', { name: 'Light theme' }));
    expect(document.documentElement.dataset.theme).toBe('light');
    expect(localStorage.getItem('chimbuko.theme')).toBe('light');
  });
});

describe('the search', () => {
  test('is reached with /, offers what the server finds, and leads there', async () => {
    location.hash = '#/overview?run=r&sel=x';
    show();
    await userEvent.keyboard('/');
    expect(document.activeElement?.id).toBe('search');
    await userEvent.keyboard('halo');
    await screen.findByRole('option', { name: /pack_halo/ });
    await userEvent.keyboard('{Enter}');
    expect(location.hash).toBe('#/functions?run=r&sel=0:13');
  });

  test('says when nothing has the name', async () => {
    serve({ search: { body: { rows: [] } }, heatmap: { body: heatmap(8) } });
    show();
    await userEvent.type(screen.getByRole('combobox', { name: /Search/ }), 'zzz');
    expect(await screen.findByText(/Nothing has this name/)).toBeTruthy();
  });
});

describe('the brush', () => {
  function drag(from: number, to: number) {
    const brush = screen.getByRole('slider', { name: 'Time that is shown' });
    brush.setPointerCapture = vi.fn();
    brush.getBoundingClientRect = () => ({ left: 0, width: 1000 }) as DOMRect;
    fireEvent.pointerDown(brush, { clientX: from, pointerId: 1 });
    fireEvent.pointerMove(brush, { clientX: to, pointerId: 1 });
    fireEvent.pointerUp(brush, { clientX: to, pointerId: 1 });
  }

  test('chooses a time, in either direction, and a click takes it back', () => {
    show();
    drag(750, 500);
    expect(location.hash).toBe('#/overview?t0=1000&t1=1500');
    drag(200, 201);
    expect(location.hash).toBe('#/overview');
  });

  test('is moved with the arrows', async () => {
    location.hash = '#/overview?t0=500&t1=1000';
    show();
    act(() => screen.getByRole('slider').focus());
    await userEvent.keyboard('{ArrowRight}');
    expect(location.hash).toBe('#/overview?t0=600&t1=1100');
  });
});

describe('states of the connection', () => {
  test('that is cut: how old the data are, and the content stays', () => {
    show({ link: 'cut', heard: Date.now() - 12_000 });
    expect(screen.getByText('reconnecting, data as of 12 s ago')).toBeTruthy();
    expect(screen.getByRole('heading', { level: 1 })).toBeTruthy();
  });

  test('whose server has a problem: what it says', () => {
    show({ trouble: 'the disk is full; make room' });
    expect(screen.getByText('the server says: the disk is full; make room')).toBeTruthy();
  });

  test('that never was: the problem and the hint', () => {
    show({
      overview: undefined,
      problem: new Problem('the server does not answer', 'is chimbuko still running?'),
    });
    expect(screen.getByRole('alert').textContent).toBe(
      'The server does not answer.Is chimbuko still running?',
    );
  });

  test('that is just made: gray bars, no empty charts', () => {
    show({ overview: undefined });
    expect(screen.getByRole('status', { name: 'loading the overview' })).toBeTruthy();
  });

  test('that is frozen: how much is new', async () => {
    const pause = vi.fn();
    show({ paused: true, missed: 12_400, pause });
    await userEvent.click(screen.getByRole('button', { name: /\+12.400 new — resume/ }));
    expect(pause).toHaveBeenCalledWith(false);
  });
});

test('a view that fails leaves the frame and the way to the others', async () => {
  const noise = vi.spyOn(console, 'error').mockReturnValue(undefined);
  show({ overview: { ...overview(8), figures: null as never } });
  await waitFor(() => expect(screen.getByText('This view could not be drawn.')).toBeTruthy());
  expect(screen.getByRole('navigation')).toBeTruthy();
  noise.mockRestore();
});
