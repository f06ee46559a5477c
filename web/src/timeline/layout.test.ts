import { describe, expect, test } from 'vitest';
import type { LaneCall } from '../api/index.ts';
import { call, messages, waitLane } from '../test/fixtures/evidence.ts';
import { boxKey, boxOf, hitAt, ownTime, step } from './find.ts';
import { boundsOf, firstSpan, foldedLevels, layout, rowHeight, type Section } from './layout.ts';
import { hitWords } from './words.ts';

function section(part: Partial<Section> = {}): Section {
  return {
    id: 'this',
    heading: '',
    lanes: [waitLane()],
    arrows: [],
    counters: [],
    shift: 0,
    program: 0,
    rank: 4,
    ...part,
  };
}

const peer = section({
  id: '0:3:19:1089',
  heading: 'cause of the wait',
  rank: 3,
  shift: 55,
  lanes: [
    {
      name: 'rank 3, thread 0',
      rank: 3,
      calls: [call('pack', 0, 0, 327, { event_id: '3:19:1089', self: true })],
    },
  ],
});

describe('the rows of a thread', () => {
  test('are the depths of its calls', () => {
    const placement = layout([section()]);
    const rows = Object.fromEntries(placement.boxes.map((b) => [b.call.function, b.row]));
    expect(rows).toMatchObject({ main: 0, time_step: 1, halo: 2, 'MPI_Waitall()': 3 });
    expect(placement.tracks[0]?.height).toBe(4 * rowHeight);
  });

  test('do not overlap those of other tracks', () => {
    const placement = layout([section({ arrows: messages() }), peer]);
    placement.tracks.reduce((bottom, t) => {
      expect(t.top).toBeGreaterThanOrEqual(bottom);
      return t.top + t.height;
    }, 0);
    const last = placement.tracks.at(-1);
    expect(placement.height).toBe((last?.top ?? 0) + (last?.height ?? 0));
  });

  test('share one row for callers open throughout', () => {
    const calls: LaneCall[] = Array.from({ length: 30 }, (_, i) =>
      call(`f${i}`, i, -100 + i, 1000, { open: i < 28 }),
    );
    expect(foldedLevels(calls)).toBe(19);
    const placement = layout([section({ lanes: [{ name: 'deep', rank: 0, calls }] })]);
    expect(placement.tracks[0]?.height).toBe(12 * rowHeight);
    expect(placement.boxes[0]?.call.function).toBe('f18');
    expect(placement.boxes[0]?.folded).toBe(18);
    expect(placement.boxes.find((b) => b.call.function === 'f29')?.row).toBe(11);
  });

  test('do not merge callers that ended', () => {
    const calls = Array.from({ length: 30 }, (_, i) => call(`f${i}`, i, i, 1000));
    expect(foldedLevels(calls)).toBe(0);
  });

  test('exist for a thread without calls', () => {
    const placement = layout([section({ lanes: [{ name: 'empty', rank: 0, calls: [] }] })]);
    expect(placement.tracks[0]?.height).toBe(rowHeight);
    expect(boundsOf(placement).to).toBeGreaterThan(boundsOf(placement).from);
  });
});

describe('messages', () => {
  test('connect to lines of ranks outside the record', () => {
    const placement = layout([section({ arrows: messages() })]);
    expect(placement.tracks.map((t) => t.name)).toEqual(['rank 4, thread 0', 'rank 3', 'rank 5']);
    const sent = placement.links[0];
    expect(sent?.fromY).toBe(4 * rowHeight); // below the innermost call at that time
    expect(sent?.toY).toBeGreaterThan(sent?.fromY ?? 0);
    const received = placement.links[2];
    expect(received?.fromY).toBeGreaterThan(received?.toY ?? 0);
  });

  test('connect to calls of visible ranks', () => {
    const placement = layout([section({ arrows: messages() }), peer]);
    expect(placement.tracks.map((t) => t.name)).toEqual([
      'rank 4, thread 0',
      'rank 5',
      'rank 3, thread 0',
    ]);
    expect(placement.links[0]?.toY).toBe(placement.tracks[2]?.top);
  });

  test('of a normal execution do not connect to ranks of another time', () => {
    const placement = layout([section(), peer, section({ id: 'twin', arrows: messages() })]);
    expect(placement.tracks.filter((t) => t.section === 'twin').map((t) => t.name)).toEqual([
      'rank 4, thread 0',
      'rank 3',
      'rank 5',
    ]);
  });

  test('share a line for many ranks', () => {
    const arrows = Array.from({ length: 20 }, (_, i) => ({
      kind: 'send',
      from_lane: 0,
      to_lane: -1,
      from_us: i,
      to_us: i,
      partner: i,
    }));
    const placement = layout([section({ arrows })]);
    expect(placement.tracks.filter((t) => t.kind === 'partner')).toHaveLength(6);
    expect(placement.tracks.at(-1)?.name).toBe('15 other ranks');
    expect(placement.links).toHaveLength(20);
  });

  test('omit missing lanes', () => {
    const arrows = [{ kind: 'launch', from_lane: 7, to_lane: 0, from_us: 0, to_us: 0, partner: 4 }];
    expect(layout([section({ arrows })]).links).toEqual([]);
  });
});

test('a launch connects the launching call to the kernel', () => {
  const lanes = [
    { name: 'GPU', rank: 0, calls: [call('kernel', 0, 0, 500, { self: true, group: 'gpu' })] },
    {
      name: 'thread 0',
      rank: 0,
      calls: [call('main', 0, -900, 600, { open: true }), call('cudaLaunchKernel', 1, -21, 1)],
    },
  ];
  const arrows = [{ kind: 'launch', from_lane: 1, to_lane: 0, from_us: -21, to_us: 0, partner: 0 }];
  const placement = layout([section({ lanes, arrows })]);
  const [link] = placement.links;
  expect(link?.fromY).toBe((placement.tracks[1]?.top ?? 0) + 2 * rowHeight);
  expect(link?.toY).toBe((placement.tracks[0]?.top ?? 0) + rowHeight);
});

describe('the initial range', () => {
  test('shows the window and keeps the execution visible', () => {
    const placement = layout([section({ arrows: messages() })]);
    const span = firstSpan(placement, 'this');
    expect(span.from).toBeLessThan(-112);
    expect(span.from).toBeGreaterThan(-6 * 410);
    expect(410 / (span.to - span.from)).toBeGreaterThan(0.06);
  });

  test('excludes callers open for seconds', () => {
    const placement = layout([section()]);
    expect(boundsOf(placement).from).toBeLessThan(-4e6);
    expect(firstSpan(placement, 'this').from).toBeGreaterThan(-1e4);
  });

  test('includes the culprit', () => {
    const late = { ...peer, shift: 1500 };
    expect(firstSpan(layout([section(), late]), 'this').to).toBeGreaterThan(1500 + 327);
  });
});

describe('pointing', () => {
  const placement = layout([section({ arrows: messages() })]);
  const span = { from: -100, to: 900 };
  const wait = boxOf(placement, '4:19:1100');

  test('finds the call under a pixel', () => {
    const hit = hitAt(placement, 300, 3 * rowHeight + 4, span, 1000);
    expect(hit.box).toBe(wait);
    expect(hitAt(placement, 505, 3 * rowHeight + 4, span, 1000).box).toBe(wait);
    expect(hitAt(placement, 560, 3 * rowHeight + 4, span, 1000).box).toBeUndefined();
  });

  test('finds calls that are narrower than a pixel', () => {
    const wide = { from: -1e6, to: 1e6 };
    const hit = hitAt(placement, 500, 3 * rowHeight + 4, wide, 1000);
    expect(hit.box?.row).toBe(3);
  });

  test('finds messages beside calls', () => {
    const hit = hitAt(placement, 508, placement.links[2]?.fromY ?? 0, span, 1000);
    expect(hit.link?.arrow.kind).toBe('receive');
    expect(hitWords(placement, hit)).toEqual({
      heading: 'message from rank 3',
      lines: [
        ['size', '8.19 kB'],
        ['tag', '0'],
        ['at', '+408 µs'],
      ],
    });
  });

  test('describes only known values of an open call', () => {
    const main = placement.boxes.find((b) => b.call.function === 'main');
    const words = hitWords(placement, main ? { box: main } : {});
    expect(words?.lines.map((l) => l[0])).toEqual(['at least', 'entered', 'state']);
  });

  test('shows nothing over empty space', () => {
    expect(
      hitWords(placement, hitAt(placement, 990, 1, { from: 1e4, to: 2e4 }, 1000)),
    ).toBeUndefined();
  });
});

describe('stepping with arrows', () => {
  const placement = layout([section(), peer]);
  const at = (name: string) => placement.boxes.find((b) => b.call.function === name);
  const go = (from: string, way: Parameters<typeof step>[2]) => {
    const b = at(from);
    return b ? step(placement, b, way)?.call.function : undefined;
  };

  test('selects the previous and next call in the row', () => {
    expect(go('halo', 'before')).toBe('pack');
    expect(go('halo', 'after')).toBe('update_block');
    expect(go('main', 'before')).toBeUndefined();
  });

  test('selects the caller and the execution', () => {
    expect(go('MPI_Waitall()', 'out')).toBe('halo');
    expect(go('halo', 'in')).toBe('MPI_Waitall()');
    expect(go('time_step', 'in')).toBe('update_block');
  });

  test('moves to the next thread', () => {
    const wait = boxOf(placement, '4:19:1100');
    expect(wait && step(placement, wait, 'in')?.section).toBe(peer.id);
    const pack = boxOf(placement, `${peer.id}/3:19:1089`);
    expect(pack && step(placement, pack, 'out')?.section).toBe('this');
  });
});

test('a call has a distinct key in each section', () => {
  const placement = layout([section(), section({ id: 'twin' })]);
  const keys = placement.boxes.map(boxKey);
  expect(new Set(keys).size).toBe(keys.length);
});

test('own time excludes callees', () => {
  const placement = layout([section()]);
  const halo = placement.boxes.find((b) => b.call.function === 'halo');
  expect(halo && ownTime(placement, halo)).toBe(437 - 2 - 2 - 410);
});
