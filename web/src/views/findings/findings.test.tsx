import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test, vi } from 'vitest';
import { finding, findingList, plot } from '../../test/fixtures/findings.ts';
import { slowEvidence } from '../../test/fixtures/ranks.ts';
import { overview } from '../../test/fixtures/run.ts';
import { renderIn, serve, type Reply } from '../../test/render.tsx';
import FindingsView from './FindingsView.tsx';
import { findingMarkdown } from './markdown.ts';
import { fold, narrow, within as inTime, type Narrowing } from './select.ts';
import { bestBy, colorGroups, stripOption } from './stripOption.ts';

vi.mock('../../ui/chart/echarts.ts', () => ({
  makeChart: () => ({ on: vi.fn(), resize: vi.fn(), setOption: vi.fn(), dispose: vi.fn() }),
  chartSVG: () => '',
}));

const saved: Reply = { body: { key: 'aaaa1111', state: 'muted', note: 'known', at: '' } };

function show(list = findingList(8), hash = '', label: Reply = saved) {
  location.hash = hash;
  const requests = serve({
    findings: { body: list },
    'findings/aaaa1111/plot': { body: plot() },
    labels: label,
  });
  const refresh = vi.fn();
  renderIn({ overview: overview(8), refresh }, <FindingsView />);
  return { requests, refresh };
}

const functions = () =>
  within(screen.getByRole('treegrid'))
    .getAllByRole('row')
    .slice(1)
    .map((r) => within(r).getAllByRole('cell')[6]?.textContent);

describe('the list of findings', () => {
  test('groups waits under their cause', async () => {
    show();
    await screen.findByRole('treegrid');
    expect(functions()).toEqual([
      'pack_halo()',
      expect.stringContaining('gemm_kernel'),
      'write_block(_IO_FILE*, int)',
    ]);
    await userEvent.click(screen.getByRole('button', { name: 'unfold' }));
    expect(functions()[1]).toBe('MPI_Allreduce()');
  });

  test('hides and counts muted findings, and shows them on request', async () => {
    show();
    await userEvent.click(await screen.findByRole('button', { name: 'Show 1 muted' }));
    expect(functions()).toContain('local_residual()');
    expect(location.hash).toBe('#/overview?muted=1');
  });

  test('filters by kind and stores the filter in the address', async () => {
    show();
    await userEvent.click(await screen.findByRole('button', { name: /^recurring/ }));
    expect(functions()).toEqual([expect.stringContaining('gemm_kernel')]);
    expect(location.hash).toContain('kind=recurring');
  });

  test('filters by rank and host of the address', async () => {
    show(findingList(1000), '#/findings?rank=999');
    await screen.findByRole('treegrid');
    expect(functions().length).toBe(2);
  });

  test('reports empty filter results with a reset button', async () => {
    show(findingList(8), '#/findings?host=nowhere');
    await userEvent.click(await screen.findByRole('button', { name: 'Show all' }));
    expect(functions()).toHaveLength(3);
  });

  test('reports that there are no findings', async () => {
    show({ rows: [], total: 0, writable: true, stored: true });
    expect(await screen.findByText(/^0 findings in 41/)).toBeTruthy();
  });

  test('reports that it shows only the worst', async () => {
    show({ ...findingList(8), total: 12_000 });
    expect(await screen.findByText(/showing 5 of 12.000, the worst/)).toBeTruthy();
  });

  test('shows errors', async () => {
    serve({
      findings: {
        status: 503,
        body: { error: 'this process has no store', hint: 'ask again later' },
      },
    });
    renderIn({ overview: overview(8) }, <FindingsView />);
    expect((await screen.findByRole('alert')).textContent).toContain('This process has no store.');
  });
});

describe('a finding', () => {
  test('shows a summary and the waits it caused', async () => {
    show(findingList(8), '#/findings?sel=aaaa1111');
    const section = await screen.findByRole('region', { name: 'Finding 1' });
    expect(section.textContent).toContain('pack_halo() is slow on ranks 0-3 of nid00123');
    expect(
      within(section)
        .getByRole('link', { name: /finding 2/ })
        .getAttribute('href'),
    ).toContain('sel=bbbb2222');
    expect(
      within(section)
        .getByRole('link', { name: /Evidence/ })
        .getAttribute('href'),
    ).toBe('#/e/0:1:27:7044');
  });

  test('says what was late', async () => {
    const list = findingList(8);
    list.rows[0] = finding({ late: 'device' });
    show(list, '#/findings?sel=aaaa1111');
    const late = await screen.findByTitle(
      'Lost most of the time: a GPU, or calls that wait for it',
    );
    expect(late.textContent).toBe('late: device');
    expect(findingMarkdown(finding({ late: 'device', hosts: [] }), 'r', 'http://x/')).toMatch(
      /- Late: device\n- Where: ranks 0-3, `/,
    );
  });

  test('describes its plot and lists events with links', async () => {
    show(findingList(8), '#/findings?sel=aaaa1111');
    const chart = await screen.findByRole('img', { name: /100 anomalies and 300 typical/ });
    expect(chart.getAttribute('aria-label')).toContain('typical is 380 µs to 520 µs');
    const events = screen.getByRole('grid', { name: 'Anomalies of finding 1' });
    expect(within(events).getAllByRole('link')[0]?.getAttribute('href')).toMatch(
      /^#\/e\/0:\d:\d+:\d+$/,
    );
  });

  test('is muted with a reason', async () => {
    const { requests, refresh } = show(findingList(8), '#/findings?sel=aaaa1111');
    await userEvent.click(await screen.findByRole('button', { name: 'Mute…' }));
    await userEvent.type(screen.getByRole('textbox', { name: 'Reason' }), 'known');
    await userEvent.click(screen.getByRole('button', { name: 'Mute' }));
    await waitFor(() => expect(refresh).toHaveBeenCalled());
    expect(requests.find((r) => r.method === 'PUT')).toEqual({
      method: 'PUT',
      path: 'api/v1/runs/r/labels/aaaa1111',
      body: { state: 'muted', note: 'known' },
    });
  });

  test('explains why it cannot be labeled', async () => {
    show({ ...findingList(8), writable: false }, '#/findings?sel=aaaa1111');
    const mute = await screen.findByRole('button', { name: 'Mute…' });
    expect(mute).toHaveProperty('disabled', true);
    expect(mute.getAttribute('title')).toContain('is read-only');
  });

  test('shows the refusal of a label', async () => {
    const refused = {
      status: 403,
      body: { error: 'labels are read-only', hint: 'start without --read-only' },
    };
    show(findingList(8), '#/findings?sel=aaaa1111', refused);
    await userEvent.click(await screen.findByRole('button', { name: 'Expected…' }));
    await userEvent.click(screen.getByRole('button', { name: 'Mark as expected' }));
    expect((await screen.findByRole('alert')).textContent).toBe(
      'Labels are read-only. Start without --read-only.',
    );
  });

  test('escapes Markdown', () => {
    const text = findingMarkdown(
      finding({ function: 'a`b` <script>', summary: '<script>x</script>' }),
      'r',
      'http://x/',
    );
    expect(text).toContain('``a`b` <script>``');
    expect(text).toContain('\\<script\\>x\\</script\\>.');
  });
});

describe('filtering', () => {
  const all: Narrowing = {
    kinds: [],
    host: '',
    rank: '',
    program: '',
    t0: undefined,
    t1: undefined,
    muted: true,
    minor: true,
    withdrawn: false,
  };

  test('by time uses the intervals with anomalies', () => {
    const i = finding({
      from_s: 0,
      last_s: 2000,
      over_time: [5, ...new Array<number>(18).fill(0), 5],
    });
    expect(inTime(i, 900, 1000)).toBe(false);
    expect(inTime(i, 1950, 2000)).toBe(true);
    expect(inTime(i, undefined, undefined)).toBe(true);
    // The parts end where the finding was computed, not where the run is now.
    expect(inTime({ ...i, over_to_s: 1000 }, 960, 990)).toBe(true);
    expect(inTime({ ...i, over_to_s: 1000 }, 1900, 2000)).toBe(false);
  });

  test('counts what each kind selects among the others', async () => {
    const rows = [
      finding({ key: 'a', finding: 1, kind: 'outlier', ranks: [1] }),
      finding({ key: 'b', finding: 2, kind: 'outlier', ranks: [5] }),
      finding({ key: 'c', finding: 3, kind: 'wait', ranks: [1], listed: false }),
    ];
    serve({ findings: { body: { rows, writable: false, stored: true, total: 3 } } });
    location.hash = '#/findings?rank=1';
    renderIn({ overview: overview(8) }, <FindingsView />);
    const kinds = await screen.findByRole('group', { name: 'Filter by kind' });
    expect(
      within(kinds)
        .getAllByRole('button')
        .map((b) => b.textContent),
    ).toEqual(['outlier 1']);
    location.hash = '';
  });

  test('keeps findings of all ranks, which have no ranks', () => {
    const i = finding({ kind: 'change', ranks: [], rank_count: 0, hosts: [], host_count: 0 });
    expect(narrow([i], { ...all, rank: '3', host: 'nid00123' })).toEqual([i]);
  });

  test('keeps findings with more ranks than listed', () => {
    const i = finding({ ranks: [0, 1], rank_count: 5000 });
    expect(narrow([i], { ...all, rank: '4711' })).toEqual([i]);
  });

  test('mutes waits together with their cause', () => {
    const rows = findingList(8).rows.map((i) =>
      i.finding === 1 ? { ...i, label: { key: i.key, state: 'expected', note: '', at: '' } } : i,
    );
    expect(narrow(rows, { ...all, muted: false }).map((i) => i.finding)).toEqual([3, 4]);
  });

  test('hides minor and withdrawn findings until asked for', () => {
    const rows = [
      finding({ finding: 1 }),
      finding({ finding: 2, listed: false }),
      finding({ finding: 3, listed: false, cause: 2 }),
      finding({ finding: 4, listed: false, status: 'withdrawn' }),
    ];
    const numbers = (n: Partial<Narrowing>) =>
      narrow(rows, { ...all, minor: false, ...n }).map((i) => i.finding);
    expect(numbers({})).toEqual([1]);
    expect(numbers({ minor: true })).toEqual([1, 2, 3]);
    expect(numbers({ withdrawn: true })).toEqual([4]);
  });

  test('keeps victims without a listed culprit', () => {
    const list = findingList(8).rows;
    expect(fold(list.filter((i) => i.finding !== 1)).top.map((i) => i.finding)).toContain(2);
    expect(
      fold(list)
        .victims.get(1)
        ?.map((i) => i.finding),
    ).toEqual([2]);
  });
});

describe('the strip plot', () => {
  const colors = {
    theme: 'dark',
    ink: '',
    ink2: '',
    ink3: '',
    line: '',
    panel: '',
    raised: '',
    accent: '',
    typical: '',
    typicalBand: '',
    threshold: '',
    selection: '',
  } as const;

  test('colors by the strongest difference', () => {
    expect(bestBy(plot().points)).toBe('rank');
    const many = plot().points.map((p, i) => ({ ...p, rank: i, host: `h${i}` }));
    expect(bestBy(many)).toBe('kind');
    expect(colorGroups(many, 'rank', 'slow')).toHaveLength(8);
    expect(colorGroups(many, 'rank', 'slow').at(-1)?.[0]).toBe('others');
  });

  test('shows host names as text in tooltips', () => {
    const evil = plot();
    evil.points = [
      { ...(evil.points[0] ?? plot().points[0]), host: '<b>x</b>' } as (typeof evil.points)[0],
    ];
    const option = stripOption(evil, finding({}), 'kind', { from: 0, to: 10 }, colors) as {
      tooltip: { formatter: (p: unknown) => HTMLElement };
    };
    const tip = option.tooltip.formatter({ data: [0, 1, 0] });
    expect(tip.querySelector('b')).toBeNull();
    expect(tip.textContent).toContain('<b>x</b>');
  });

  test('has a linear axis from zero on request', () => {
    const of = (scale: 'log' | 'linear') =>
      stripOption(plot(), finding({}), 'kind', { from: 0, to: 10 }, colors, scale) as {
        yAxis: { type: string; min: number };
      };
    expect(of('linear').yAxis).toMatchObject({ type: 'value', min: 0 });
    expect(of('log').yAxis.type).toBe('log');
  });

  test('shows executions of zero duration', () => {
    const zero = plot();
    zero.points = zero.points.map((p) => ({ ...p, exclusive_us: 0 }));
    const option = stripOption(zero, finding({}), 'kind', { from: 0, to: 10 }, colors) as {
      yAxis: { min: number; max: number };
    };
    expect(option.yAxis.min).toBeGreaterThan(0);
    expect(option.yAxis.max).toBeGreaterThan(option.yAxis.min);
  });
});

test('a slow peer shows its ratio over time, its functions, a typical peer and counters', async () => {
  location.hash = '#/findings?sel=aaaa1111';
  const list = findingList(8);
  const slow = finding({ key: 'aaaa1111', kind: 'slow-peer', function: 'push_boris(int)' });
  serve({
    findings: { body: { ...list, rows: [slow] } },
    'findings/aaaa1111/plot': { body: { points: [], total: 0 } },
    'findings/aaaa1111/slow-peer': { body: slowEvidence() },
  });
  renderIn({ overview: overview(8) }, <FindingsView />);
  const chart = await screen.findByRole('img', { name: /^Time divided by that of peers/ });
  expect(chart.getAttribute('aria-label')).toContain('1.90× while it was slow, 1.00× otherwise');
  expect(chart.querySelectorAll('.slow')).toHaveLength(8);
  expect(chart.querySelectorAll('.incomparable')).toHaveLength(1);
  const row = (name: RegExp) => screen.getByRole('row', { name }).textContent;
  expect(row(/^push_boris/)).toContain('1.90×');
  expect(row(/^push_boris/)).toContain('50 %');
  expect(row(/^rank 3/)).toContain('3.50 s');
  expect(screen.getByText(/slower than 12 peers/)).toBeTruthy();
  expect(screen.getByText(/it has more work/)).toBeTruthy();
  expect(screen.getByRole('table', { name: /Counters that differ/ })).toBeTruthy();
  expect(screen.queryByRole('grid', { name: /Anomalies of finding/ })).toBeNull();
});
