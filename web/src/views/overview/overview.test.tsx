import { screen, within } from '@testing-library/react';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Notice, Overview, PacketsInfo } from '../../api/index.ts';
import { finding } from '../../test/fixtures/findings.ts';
import { heatmap, overview } from '../../test/fixtures/run.ts';
import { renderIn, serve } from '../../test/render.tsx';
import { hostGroups, labeled, pixels, rowHeight, share } from './heat.ts';
import { stack } from './KindStrip.tsx';
import OverviewView from './OverviewView.tsx';

beforeEach(() => {
  serve({ heatmap: { body: heatmap(8) } });
});

function show(part: Partial<Overview> = {}) {
  return renderIn(
    { overview: overview(8, { place: '/scratch/runs/heat2d', ...part }) },
    <OverviewView />,
  );
}

const notice = (topic: string, sentence: string, level: Notice['level'] = 'watch'): Notice => ({
  topic,
  sentence,
  level,
});

const packets: PacketsInfo = {
  replay: true,
  taken: 12,
  total: 60,
  speed: 10,
  refused: 0,
  left_out: 0,
  worst: [
    {
      program: 0,
      rank: 3,
      function: '<b>halo()</b>',
      anomalies: 7,
      time_us: 7000,
      longest_us: 3000,
      score: 9,
    },
  ],
  by_function: [{ program: 0, function: '<b>halo()</b>', anomalies: 9, calls: 1200 }],
  time_in_anomalies_us: 9000,
};

describe('the overview of packets', () => {
  test('shows counts only', async () => {
    serve({ heatmap: { body: { ...heatmap(8), metric: 'anomalies' } } });
    const { container } = show({
      packets,
      findings: [],
      notices: [notice('packets', 'they hold no executions')],
    });
    expect(screen.getByText('they hold no executions.')).toBeTruthy();
    expect(screen.getByRole('button', { name: /Packets/ }).textContent).toContain('12 / 60');
    expect(screen.queryByRole('button', { name: /Lost time/ })).toBeNull();
    expect(screen.queryByRole('group', { name: 'Colors' })).toBeNull();
    const list = screen.getByRole('region', { name: 'Most anomalies' });
    expect(list.textContent).toContain('of 1200 calls');
    expect(list.textContent).toContain('rank 3');
    expect(container.querySelector('b')).toBeNull();
    expect(await screen.findByText('Anomalies by rank over time')).toBeTruthy();
  });
});

describe('the overview', () => {
  test('starts with the verdict and links it to its finding', () => {
    show();
    const verdict = screen.getByRole('heading', { level: 1 });
    expect(verdict.textContent).toContain(
      'Worst: pack_halo() on ranks 0-3 of nid00123 since 00:14:20.',
    );
    expect(within(verdict).getByRole('link').getAttribute('href')).toBe('#/findings?sel=aaaa1111');
  });

  test('explains its figures and shows the equivalent command', () => {
    show();
    const lost = screen.getByRole('button', { name: /Lost time/ });
    expect(lost.textContent).toContain('4.12 %');
    const words = document.getElementById(lost.getAttribute('aria-describedby') ?? '');
    expect(words?.textContent).toContain('chimbuko findings /scratch/runs/heat2d');
  });

  test('lists the worst findings with function, host, ranks and cost', () => {
    show();
    const list = screen.getByRole('region', { name: 'Costliest findings' });
    const [first] = within(list).getAllByRole('listitem');
    expect(first?.textContent).toContain('pack_halo()');
    expect(first?.textContent).toContain('nid00123 · ranks 0-3');
    expect(first?.textContent).toContain('42.8 s');
  });

  test('shows when findings began and ended on the axis of the run', () => {
    const [over_time, over_to_s] = [[0, 4, 0, 0], 1000];
    show({
      length_s: 2000,
      findings: [
        finding({ key: 'a', from_s: 250, to_s: 500, over_time, over_to_s }),
        finding({ key: 'b', from_s: 750, to_s: null, over_time: [0, 0, 0, 0], over_to_s }),
      ],
    });
    const list = screen.getByRole('region', { name: 'Costliest findings' });
    const [past, open] = within(list).getAllByRole('listitem');
    expect(past?.textContent).toContain('00:04:10 – 00:08:20');
    expect(open?.textContent).toContain('00:12:30 – ongoing');
    const bars = within(list).getAllByRole('img', { name: /over the run/ });
    expect(bars[0]?.getAttribute('aria-label')).toContain('ended at 00:08:20');
    expect(bars[1]?.getAttribute('aria-label')).toContain('ongoing');
    // 4 parts of 110 pixels for 2000 s end at 1000 s: the second begins at a quarter of the half.
    const path = (i: number) => bars[i]?.querySelectorAll('path')[1]?.getAttribute('d');
    expect(path(0)).toMatch(/^M13\.75 /);
    // A lasting change has no anomalies, but lasts.
    expect(path(1)).toMatch(/^M41\.25 /);
  });

  test('says in one line how many data problems there are, and lists them on request', () => {
    show({
      notices: [
        notice('missing-ranks', 'Rank 9 is missing', 'bad'),
        notice('store', 'A trace is damaged'),
        notice('drops', '12 messages were lost'),
        notice('review', '27 flags were confirmed', 'good'),
      ],
    });
    const words = screen.getByText('3 data problems, 1 remark');
    const line = words.closest('details');
    expect(line?.open).toBe(false);
    expect(words.closest('summary')?.textContent).toContain('Rank 9 is missing.');
    expect(within(line as HTMLElement).getByText('12 messages were lost.')).toBeTruthy();
  });

  test('shows a single notice as it is', () => {
    const { container } = show({ notices: [notice('drops', '12 messages were lost')] });
    expect(screen.getByText('12 messages were lost.')).toBeTruthy();
    expect(container.querySelector('details.notices')).toBeNull();
  });

  test('lists the findings of the selected time and labels the rest as of the whole run', async () => {
    const early = finding({ key: 'a', finding: 1, from_s: 0, to_s: 90, last_s: 90 });
    early.over_time = [9, ...new Array<number>(19).fill(0)];
    const late = finding({ key: 'b', finding: 2, from_s: 1900, to_s: 1990, last_s: 1990 });
    late.over_time = [...new Array<number>(19).fill(0), 9];
    const body = { rows: [early, late], writable: false, stored: true, total: 2 };
    serve({ heatmap: { body: heatmap(8) }, findings: { body } });
    location.hash = '#/overview?t0=1850&t1=2000';
    show({ findings: [early, late], figures: { ...overview(8).figures, findings: 2 } });
    const list = screen.getByRole('region', { name: 'Costliest findings' });
    expect(await within(list).findByText('1 selected of 2')).toBeTruthy();
    const links = within(list).getAllByRole('listitem');
    expect(links.map((l) => within(l).getByRole('link').getAttribute('href'))).toEqual([
      '#/findings?sel=b&t0=1850&t1=2000',
    ]);
    expect(screen.getByRole('heading', { level: 1 }).textContent).toContain('whole run');
    location.hash = '';
  });

  test('names the place of a finding of all ranks', () => {
    show({ findings: [finding({ ranks: [], rank_count: 0, hosts: [], host_count: 0 })] });
    const list = screen.getByRole('region', { name: 'Costliest findings' });
    expect(list.textContent).toContain('all ranks');
    expect(list.textContent).not.toContain('· rank');
  });

  test('lists the costliest notes in a line each', () => {
    const note = { key: 'note1', summary: 'fft() takes two times: 1 ms and 9 ms', share: 0.162 };
    const [finding] = overview(8).findings;
    if (!finding) throw new Error('no finding');
    show({ notes: [{ ...finding, ...note }] });
    const notes = screen.getByRole('region', { name: 'Normal behavior' });
    const [line] = within(notes).getAllByRole('listitem');
    expect(line?.textContent).toBe('fft() takes two times: 1 ms and 9 ms: 16.2 % of the time');
    expect(within(notes).getByRole('link').getAttribute('href')).toContain('sel=note1');
  });

  test('describes the heatmap in a table', async () => {
    show();
    const link = await screen.findByRole('link', { name: /^rank 0 nid00123/ });
    expect(link.getAttribute('href')).toBe('#/findings?rank=0');
  });

  test('shows hostile names as text', () => {
    const evil = '<img src=x onerror=alert(1)>';
    const { container } = show({
      run: evil,
      verdict: { level: 'bad', sentence: evil, finding: 1 },
      notices: [notice('drops', evil)],
      findings: [finding({ function: evil, hosts: [evil], summary: evil, kind: evil })],
    });
    expect(container.querySelector('img')).toBeNull();
    expect(screen.getAllByText(`${evil}.`).length).toBeGreaterThan(0);
  });
});

describe('the overview reports its limits', () => {
  test('without data: shows commands, seen ranks and the ssh tunnel', () => {
    const none = overview(8).figures;
    show({
      state: 'waiting',
      notices: [notice('no-data', 'No data yet', 'unknown')],
      figures: { ...none, ranks: 0, ranks_expected: 4000 },
      findings: [],
    });
    expect(screen.getByText('0/4000 ranks seen')).toBeTruthy();
    expect(screen.getByText('chimbuko serve --out heat2d')).toBeTruthy();
    expect(screen.getByText(/^chimbuko ad --run-dir heat2d/)).toBeTruthy();
    expect(screen.getByText(/^ssh -L /)).toBeTruthy();
    expect(screen.queryByRole('region', { name: /rank over time/ })).toBeNull();
  });

  test('with silent ranks', () => {
    show({
      notices: [
        notice('silent-ranks', '3968 of 4000 ranks reporting; missing: 17, 18 (host nid00077)'),
      ],
    });
    expect(
      screen.getByText('3968 of 4000 ranks reporting; missing: 17, 18 (host nid00077).'),
    ).toBeTruthy();
  });

  test('hatches the heatmap while models warm up', async () => {
    show({
      notices: [
        notice('warming', 'Models have < 30 samples for 212 functions; anomalies are provisional'),
      ],
    });
    const map = await screen.findByRole('application');
    expect(map.className).toContain('warming');
  });

  test('names the setting to change after dropped records', () => {
    show({
      notices: [notice('drops', '12 records found no room: give chimbuko ad a larger --outbox')],
    });
    expect(screen.getByText(/larger --outbox/).closest('.notice')?.className).toContain('watch');
  });

  test('alerts about a damaged store', () => {
    show({
      notices: [notice('store', 'record 17 of run.duckdb is damaged; 16 were salvaged', 'bad')],
    });
    expect(screen.getByRole('alert').textContent).toContain('run.duckdb');
  });

  test('shows the result of the final review', () => {
    show({
      state: 'finished',
      live: false,
      notices: [notice('review', '678 of 2,610 flags were withdrawn at the end', 'good')],
    });
    expect(screen.getByText('678 of 2,610 flags were withdrawn at the end.')).toBeTruthy();
  });

  test('without anomalies: shows confidence and the slowest calls', () => {
    const f = overview(8).figures;
    show({
      verdict: { level: 'good', sentence: '0 anomalies in 41 M calls' },
      figures: { ...f, anomalies: 0, findings: 0, lost_us: 0 },
      findings: [],
      slowest: [
        { program: 0, function: 'MPI_Init()', longest_us: 812_000, mean_us: 700_000, calls: 8 },
      ],
    });
    expect(screen.getByRole('heading', { level: 1 }).textContent).toBe(
      '0 anomalies in 41 M calls.',
    );
    expect(screen.getByText('MPI_Init()')).toBeTruthy();
    expect(screen.getByText('812 ms')).toBeTruthy();
  });

  test('shows why the heatmap failed and retries', async () => {
    serve({
      heatmap: { status: 504, body: { error: 'no answer within 30 s', hint: 'ask for less' } },
    });
    show();
    expect((await screen.findByRole('alert')).textContent).toBe(
      'No answer within 30 s.Ask for less.Try again',
    );
  });
});

describe('the heatmap image', () => {
  test('has a logarithmic scale that shows every loss', () => {
    expect(share(0, 100)).toBe(0);
    expect(share(100, 100)).toBe(1);
    expect(share(10, 100)).toBeCloseTo(0.75);
    expect(share(1e-9, 100)).toBe(0.02);
    expect(share(5, 0)).toBe(0);
    expect(share(10, 100, 'linear')).toBeCloseTo(0.1);
    expect(share(1e-9, 100, 'linear')).toBe(0.02);
  });

  test('has one pixel per cell and ignores cells outside', () => {
    const map = heatmap(8, 4);
    map.cells = [
      { r: 1, c: 2, v: map.max },
      { r: 99, c: 0, v: 1 },
      { r: 0, c: -1, v: 1 },
    ];
    const ramp = new Uint8ClampedArray(256 * 3).fill(200);
    const out = pixels(map, ramp, [1, 2, 3], [9, 9, 9]);
    expect(out.length).toBe(8 * 4 * 4);
    expect([...out.slice(0, 4)]).toEqual([1, 2, 3, 255]);
    expect([...out.slice((4 + 2) * 4, (4 + 2) * 4 + 4)]).toEqual([200, 200, 200, 255]);
  });

  test('stripes cells without data', () => {
    const map = heatmap(8);
    const [first, second] = map.rows;
    if (!first || !second) throw new Error('no rows');
    const part = { ...map, columns: 4, from_s: 0, to_s: 8, cells: [] };
    part.rows = [
      { ...first, silent: true },
      { ...second, until_s: 4 },
    ];
    const out = pixels(part, new Uint8ClampedArray(768), [1, 1, 1], [9, 9, 9]);
    const reds = Array.from({ length: 8 }, (_, i) => out[i * 4]);
    expect(reds).toEqual([9, 1, 9, 1, 1, 1, 9, 1]);
  });

  test('labels hosts that have room', () => {
    const groups = hostGroups(heatmap(1000).rows);
    expect(groups).toHaveLength(125);
    expect(groups[0]).toEqual({ host: 'nid00123', from: 0, to: 2 });
    const named = labeled(groups, 1);
    expect(named.length).toBeLessThan(22);
    expect(rowHeight(8, 360)).toBe(26);
    expect(rowHeight(1000, 360)).toBe(1);
  });
});

test('the strip stacks kinds without overlap', () => {
  const layers = stack({
    from_s: 0,
    to_s: 1,
    series: [
      { kind: 'slow', lost_us: [1], anomalies: [1] },
      { kind: 'gpu', lost_us: [1], anomalies: [1] },
    ],
  });
  expect(layers.map((l) => l.path.split('h')[0])).toEqual([
    'M0.0 72.00v-35.00',
    'M0.0 37.00v-35.00',
  ]);
});
