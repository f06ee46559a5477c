import { cleanup, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Evidence } from '../../api/index.ts';
import { call, culpritEvidence, evidence, model } from '../../test/fixtures/evidence.ts';
import { overview } from '../../test/fixtures/run.ts';
import { without } from '../../test/fixtures/without.ts';
import { renderIn, serve, type Reply } from '../../test/render.tsx';
import { HandoverNotice } from './Actions.tsx';
import { deviation } from './Context.tsx';
import { difference } from './difference.ts';
import EvidenceView from './EvidenceView.tsx';
import { evidenceMarkdown, sizeWords } from './markdown.ts';
import { companionsOf, sectionsOf } from './sections.ts';

const path = '0:4:19:1100';

beforeEach(() => {
  HTMLCanvasElement.prototype.getContext = () => null; // there is nothing to draw on here
});

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function show(e: Evidence | Reply = evidence(), more: Record<string, Reply> = {}) {
  location.hash = `#/e/${path}`;
  const reply = 'body' in e ? e : { body: e };
  const requests = serve({
    'events/4%3A19%3A1100/evidence': reply,
    'events/3%3A19%3A1089/evidence': { body: culpritEvidence() },
    ...more,
  });
  renderIn({ overview: overview(8) }, <EvidenceView event={path} />);
  return requests;
}

describe('the head', () => {
  test('shows summary, reason, place, time and cost', async () => {
    show();
    const head = await screen.findByRole('heading', { level: 1 });
    expect(head.textContent).toBe(
      'MPI_Waitall 410 µs on rank 4 (node01), typical 2–62 µs; longer than 99.987 % of 7,992 calls.',
    );
    expect(screen.getByText(/^It took 410 µs, usually/)).toBeTruthy();
    expect(screen.getByText('402 µs')).toBeTruthy();
    expect(screen.getByText('confirmed')).toBeTruthy();
    expect(screen.getByText('comm-wait')).toBeTruthy();
    expect(screen.getAllByRole('link', { name: 'node01' })[0]?.getAttribute('href')).toBe(
      '#/findings?host=node01',
    );
  });

  test('links to the cause of the wait', async () => {
    show();
    const link = await screen.findByRole('link', { name: 'pack on rank 3' });
    expect(link.getAttribute('href')).toBe('#/e/0:3:19:1089');
  });

  test('lists the waits it caused', async () => {
    const victims = Array.from({ length: 7 }, (_, i) => ({
      event_id: `${i}:1:1`,
      program: 0,
      rank: i,
      host: 'h',
      function: 'MPI_Allreduce()',
      at_s: 1,
      lost_us: 100 - i,
    }));
    show(evidence({ roles: { role: 'culprit', victims, waits: 40, waits_lost_us: 5000 } }));
    const list = await screen.findByRole('region', { name: /Cause and waits/ });
    expect(list.textContent).toContain('40 executions waited for it and lost 5.00 ms');
    expect(within(list).getAllByRole('listitem')).toHaveLength(4);
    await userEvent.click(within(list).getByRole('button', { name: 'Show 7' }));
    expect(within(list).getAllByRole('listitem')).toHaveLength(7);
  });
});

describe('states', () => {
  test('reports a missing event with links', async () => {
    show({ status: 404, body: { error: 'event 4:19:1100 of run r: not found' } });
    expect(await screen.findByText('Event 0:4:19:1100 not found in run r.')).toBeTruthy();
    expect(screen.getByRole('link', { name: 'Findings' })).toBeTruthy();
  });

  test('reports a malformed event', () => {
    serve({});
    renderIn({}, <EvidenceView event="nonsense" />);
    expect(screen.getByText('Event nonsense not found in run r.')).toBeTruthy();
  });

  test('reports an unavailable store and retries', async () => {
    const requests = show({
      status: 503,
      body: { error: 'the store is away', hint: 'start it again' },
    });
    expect(await screen.findByText('The store is away.')).toBeTruthy();
    expect(screen.getByText('Start it again.')).toBeTruthy();
    const before = requests.length;
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await waitFor(() => expect(requests.length).toBeGreaterThan(before));
  });

  test('a withdrawn anomaly has a notice', async () => {
    show(evidence({ status: 'withdrawn' }));
    expect(await screen.findByText(/^Withdrawn: flagged during the run/)).toBeTruthy();
  });

  test('a provisional anomaly has a notice', async () => {
    show(evidence({ status: 'provisional' }));
    expect(await screen.findByText(/^Provisional: the final review/)).toBeTruthy();
  });

  test('a typical execution has a notice and no comparison', async () => {
    show(without(evidence({ anomaly: false, kind: '', status: '' }), 'twin'));
    expect(await screen.findByText(/^Typical execution/)).toBeTruthy();
    expect(screen.getByText(/execution is normal/)).toBeTruthy();
    expect(screen.queryByText('rarity')).toBeNull();
  });

  test('reports a missing model, twin and node state', async () => {
    show(without(evidence({ node_state: [], metadata: [] }), 'twin', 'model'));
    expect(await screen.findByText(/^No model stored/)).toBeTruthy();
    expect(screen.getByText(/^No normal execution kept/)).toBeTruthy();
    expect(screen.getByText(/^Node state not recorded/)).toBeTruthy();
    expect(screen.getByText('No metadata of this rank.')).toBeTruthy();
  });

  test('reports the samples of a model that warms up', async () => {
    show(evidence({ model: model({ warming: true, samples: 31 }) }));
    expect(await screen.findByText(/^Warming up: 31 samples/)).toBeTruthy();
  });

  test('lists anomalies by lost time without an event', async () => {
    const row = {
      event_id: '1:2:3',
      program: 0,
      rank: 1,
      host: 'h',
      at_s: 1,
      exclusive_us: 5,
      lost_us: 4,
      kind: 'slow',
      status: 'confirmed',
      function: 'f',
    };
    serve({ events: { body: { rows: [row] } } });
    renderIn({}, <EvidenceView event="" />);
    const link = await screen.findByRole('link', { name: '1:2:3' });
    expect(link.getAttribute('href')).toBe('#/e/0:1:2:3');
    expect(screen.queryByText(/those that lost the most/)).toBeNull();
    cleanup();

    serve({ events: { body: { rows: [row], next: 'more' } } });
    const o = overview(8);
    renderIn(
      { overview: { ...o, figures: { ...o.figures, anomalies: 511 } } },
      <EvidenceView event="" />,
    );
    expect(await screen.findByText('those that lost the most time of 511 anomalies')).toBeTruthy();
  });
});

describe('the timeline', () => {
  test('shows the record of the culprit and offers a table', async () => {
    const requests = show();
    await userEvent.click(await screen.findByText(/calls as a table/));
    await waitFor(() => expect(requests.some((r) => r.path.includes('3%3A19%3A1089'))).toBe(true));
    const table = await screen.findByRole('grid', { name: 'Timeline calls' });
    await waitFor(() => expect(within(table).getAllByText('rank 3, thread 0')).toHaveLength(2));
    expect(within(table).getByText('this execution, anomaly')).toBeTruthy();
    expect(within(table).getAllByText('not ended').length).toBeGreaterThan(0);
  });

  test('navigates with arrows and describes the selection', async () => {
    show();
    const box = await screen.findByRole('application');
    box.focus();
    await userEvent.keyboard('{ArrowDown}');
    const selectedCall = () => screen.getByText('Fit').closest('.evidence-call')?.textContent ?? '';
    await waitFor(() => expect(selectedCall()).toContain('MPI_Waitall()'));
    await userEvent.keyboard('{ArrowUp}');
    await waitFor(() => expect(selectedCall()).toContain('halo'));
    expect(location.hash).toContain('call=halo+-18');
    await userEvent.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByText('Fit')).toBeNull());
  });

  test('zooms with keys and stores the range in the address', async () => {
    show();
    await screen.findByRole('application');
    const resetButton = screen.getByRole('button', { name: 'Whole window' });
    expect(resetButton).toHaveProperty('disabled', true);
    await userEvent.keyboard('ww');
    await waitFor(() => expect(location.hash).toMatch(/w=-?\d/));
    expect(resetButton).toHaveProperty('disabled', false);
    await userEvent.click(resetButton);
    await waitFor(() => expect(location.hash).not.toContain('w='));
  });
});

describe('navigation', () => {
  test('[ and ] open the previous and next anomaly', async () => {
    show();
    await screen.findByRole('toolbar');
    await userEvent.keyboard(']');
    expect(location.hash).toBe('#/e/0:2:19:1100');
    await userEvent.keyboard('[[');
    expect(location.hash).toBe('#/e/0:4:19:1032');
  });

  test('disables the button of a missing neighbor', async () => {
    show(without(evidence(), 'next'));
    const next = await screen.findByRole('button', { name: /^Next/ });
    expect(next).toHaveProperty('disabled', true);
  });

  test('links to findings of the same signature and host', async () => {
    show();
    const same = await screen.findByRole('link', { name: 'Same finding (146)' });
    expect(same.getAttribute('href')).toBe('#/findings?sel=66ab');
    expect(screen.getByRole('link', { name: 'Same host' }).getAttribute('href')).toBe(
      '#/findings?host=node01',
    );
  });

  test('shows the raw record on request', async () => {
    show();
    await userEvent.click(await screen.findByText('Stored record (JSON)'));
    expect(screen.getByLabelText('Stored record').textContent).toContain('"func": "MPI_Waitall()"');
  });
});

describe('Perfetto', () => {
  const notice = (progress: Parameters<typeof HandoverNotice>[0]['progress']) => {
    const [onSave, onRetry] = [vi.fn(), vi.fn()];
    renderIn({}, <HandoverNotice progress={progress} onSave={onSave} onRetry={onRetry} />);
    return { onSave, onRetry };
  };

  test('offers a download if unreachable', async () => {
    const { onSave, onRetry } = notice({ at: 'unreachable' });
    expect(screen.getByText(/^Cannot reach Perfetto/)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Download trace' }));
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect([onSave.mock.calls.length, onRetry.mock.calls.length]).toEqual([1, 1]);
  });

  test('reports why the trace failed to load', () => {
    notice({ at: 'failed', problem: new Error('the record is odd') });
    expect(screen.getByText(/The record is odd\./)).toBeTruthy();
  });

  test('reports a blocked window', async () => {
    vi.stubGlobal('open', () => null);
    show();
    await userEvent.click(await screen.findByRole('button', { name: /^Open in Perfetto/ }));
    expect(screen.getByText(/browser blocked the window/)).toBeTruthy();
  });
});

test('shows hostile names as text', async () => {
  const evil = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>';
  const lane = {
    name: evil,
    rank: 4,
    calls: [call(evil, 0, 0, 410, { self: true, anomaly: true, event_id: '4:19:1100' })],
  };
  const other = { event_id: evil, program: 0, rank: 1, host: evil, function: evil, at_s: 1 };
  show(
    evidence({
      function: evil,
      host: evil,
      sentence: evil,
      why: evil,
      kind: evil,
      status: evil,
      call_path: [evil],
      lanes: [lane],
      gpu: { device: 0, context: 1, stream: 2, parent: evil, stack: [evil], problem: evil },
      counters: [{ name: evil, value: 1, at_us: 0 }],
      node_state: [{ name: evil, value: evil }],
      metadata: [{ name: evil, value: evil }],
      roles: {
        role: evil,
        sentence: evil,
        victims: [{ ...other, lost_us: 1 }],
        culprit: { ...other, lost_us: 2 },
      },
      record: { [evil]: evil },
      finding_key: evil,
      previous: evil,
      next: evil,
    }),
  );
  await userEvent.click(await screen.findByText(/calls? as a table/));
  await userEvent.click(screen.getByText('Stored record (JSON)'));
  expect(document.querySelector('img, script')).toBeNull();
  expect(screen.getAllByText(evil, { exact: false }).length).toBeGreaterThan(10);
  expect((window as unknown as { hit?: number }).hit).toBeUndefined();
});

describe('the difference from a normal execution', () => {
  const lane = (...calls: Parameters<typeof call>[]) => [
    { name: 't', rank: 0, calls: calls.map((c) => call(...c)) },
  ];
  const twin = evidence().twin;
  if (!twin) throw new Error('the fixture has a twin');

  test('is attributed to the function itself', () => {
    const d = difference(evidence());
    expect(d?.sentence).toBe(
      'It took 408 µs longer than a normal one (205×): 410 µs instead of 2 µs. All of it is own time of MPI_Waitall().',
    );
  });

  test('is attributed to callees, also if called more often', () => {
    const d = difference(
      evidence({
        function: 'step',
        exclusive_us: 10,
        inclusive_us: 100,
        lanes: lane(
          ['step', 0, 0, 100, { self: true }],
          ['solve', 1, 5, 45],
          ['deeper', 2, 6, 40],
          ['solve', 1, 50, 100],
        ),
        twin: {
          ...twin,
          exclusive_us: 10,
          inclusive_us: 40,
          lanes: lane(['step', 0, 0, 40, { self: true }], ['solve', 1, 5, 35]),
        },
      }),
    );
    expect(d?.parts[0]).toEqual({
      name: 'solve',
      here: 90,
      normal: 30,
      callsHere: 2,
      callsNormal: 1,
    });
    expect(d?.sentence).toContain('All of it is in solve, called 2 times instead of 1.');
  });

  test('counts calls missing from the record', () => {
    const d = difference(
      evidence({
        exclusive_us: 10,
        inclusive_us: 100,
        lanes: lane(['step', 0, 0, 100, { self: true }]),
      }),
    );
    expect(d?.sentence).toContain('Most of it is in calls not recorded.');
  });

  test('is shorter for a fast execution', () => {
    const d = difference(
      evidence({
        exclusive_us: 1,
        inclusive_us: 1,
        twin: { ...twin, exclusive_us: 50, inclusive_us: 50 },
      }),
    );
    expect(d?.sentence).toContain('49 µs less than a normal one (50×)');
  });

  test('needs a twin', () => {
    expect(difference(without(evidence(), 'twin'))).toBeUndefined();
  });
});

describe('related executions', () => {
  test('include the culprit at its own time', () => {
    const e = evidence();
    expect(companionsOf(e)).toEqual([{ event: '3:19:1089', program: 0, role: 'culprit' }]);
    const list = sectionsOf(e, [{ role: 'culprit', evidence: culpritEvidence() }]);
    expect(list.map((s) => [s.id, s.shift])).toEqual([
      ['this', 0],
      ['0:3:19:1089', 55],
      ['twin', 0],
    ]);
    expect(list[1]?.heading).toBe('cause of the wait: pack on rank 3 (node00), 327 µs');
  });

  test('exclude other times and the same rank', () => {
    const e = evidence();
    const far = { ...culpritEvidence(), at_s: 400 };
    const same = { ...culpritEvidence(), rank: 4 };
    const list = sectionsOf(e, [
      { role: 'culprit', evidence: far },
      { role: 'culprit', evidence: same },
    ]);
    expect(list.map((s) => s.id)).toEqual(['this', 'twin']);
  });
});

test('counts deviations of a counter', () => {
  expect(deviation({ name: 'a', value: 90, at_us: 0, mean: 10, stddev: 8 })).toBe(10);
  expect(deviation({ name: 'a', value: 90, at_us: 0, mean: 90, stddev: 0 })).toBeUndefined();
  expect(deviation({ name: 'a', value: 90, at_us: 0 })).toBeUndefined();
});

test('Markdown has all facts and escapes names', () => {
  const text = evidenceMarkdown(evidence({ function: 'f`<b>|x' }), 'heat2d', 'http://h/#/e/0:1');
  expect(text).toContain('### ``f`<b>|x`` on rank 4 of run `heat2d`');
  expect(text).toContain('- Lost: 402 µs; own time 410 µs');
  expect(text).toContain('- Model: tail, usual 2 to 62 µs, 7992 samples, flagged above 113 µs');
  expect(text).toContain('- It waited for pack on rank 3 (node00).');
  expect(text).toContain('http://h/#/e/0:1');
});

test('sizes of messages may be unknown', () => {
  const message = { kind: 'send', from_lane: 0, to_lane: -1, from_us: 0, to_us: 0, partner: 1 };
  expect(sizeWords([{ ...message, bytes: 0 }])).toBe('0 B');
  expect(sizeWords([message])).toBe('of unknown size');
  expect(sizeWords([{ ...message, bytes: 1000 }, message])).toBe('1 kB and 1 of unknown size');
});
