import { render, screen } from '@testing-library/react';
import { describe, expect, test } from 'vitest';
import { model } from '../test/fixtures/evidence.ts';
import { Histogram } from './Histogram.tsx';
import { apart, barAt, marksOf, tellingLimit } from './marks.ts';
import { flaggedWords, histogramWords, limitWords, rangeWords, usualWords } from './words.ts';

describe('marks', () => {
  test('place longer times to the right, all inside the plot', () => {
    const m = marksOf(model(), 410);
    const places = m.bars.map((b) => b.left);
    expect([...places].sort((a, b) => a - b)).toEqual(places);
    for (const b of m.bars) {
      expect(b.left).toBeGreaterThanOrEqual(0);
      expect(b.right).toBeLessThanOrEqual(1);
      expect(b.right).toBeGreaterThan(b.left);
    }
  });

  test('show one call beside thousands, and no bar for an empty bin', () => {
    const m = marksOf(model({ counts: [2759, 1, 0, 0, 0, 0, 151] }), 410);
    expect(m.bars).toHaveLength(3);
    expect(m.bars[0]?.height).toBe(1);
    expect(m.bars[1]?.height).toBeGreaterThan(0.05);
    expect(m.bars[1]?.height).toBeLessThan(0.2);
  });

  test('have linear axes on request', () => {
    const m = marksOf(model({ counts: [2759, 1, 0, 0, 0, 0, 151] }), 410, 'linear');
    expect(m.bars.map((b) => b.height)).toEqual([1, 1 / 2759, 151 / 2759]);
    expect(m.counts.map((c) => c.value)).toEqual([0, 1000, 2000]);
    const [first, second, third] = m.ticks;
    const step = (second?.at ?? 0) - (first?.at ?? 0);
    expect((third?.at ?? 0) - (second?.at ?? 0)).toBeCloseTo(step);
    expect(histogramWords(model(), 410, 'linear')).toContain('both axes linear');
  });

  test('place the value right of the limit it exceeds', () => {
    const m = marksOf(model(), 410);
    expect(m.value?.at).toBeGreaterThan(m.limits[0]?.at ?? 1);
    expect(tellingLimit(m)).toMatchObject({ side: 'above', value: 113 });
  });

  test('name the lower limit for a time below it', () => {
    const m = marksOf(model({ threshold_us: { low: 50, high: 113 } }), 3);
    expect(tellingLimit(m)).toMatchObject({ side: 'below', value: 50 });
    expect(tellingLimit(marksOf(model({ threshold_us: { low: 50, high: 113 } })))).toMatchObject({
      side: 'above',
    });
  });

  test('have a band per mode; open bands reach the border', () => {
    const m = marksOf(model({ normal_us: [{ low: 2, high: 3 }, { low: 20 }] }), 410);
    expect(m.usual).toHaveLength(2);
    expect(m.usual[1]?.right).toBe(1);
  });

  test('accept a model of mean and deviation only', () => {
    const m = marksOf(model({ edges_us: [], counts: [], normal_us: [] }), 410);
    expect(m.bars).toEqual([]);
    expect(m.usual).toHaveLength(1);
    expect(m.value?.at).toBeGreaterThan(0.5);
  });

  test('accept zero times and no times', () => {
    const zero = marksOf(model({ edges_us: [0, 1, 2], counts: [5, 1] }), 0);
    for (const b of zero.bars) expect(Number.isFinite(b.left)).toBe(true);
    const none = marksOf({
      algorithm: 'sstd',
      edges_us: [],
      counts: [],
      samples: 0,
      normal_us: [],
      warming: true,
    });
    expect(none.bars).toEqual([]);
    expect(none.ticks.every((t) => Number.isFinite(t.at))).toBe(true);
  });

  test('have ticks at round times', () => {
    const ticks = marksOf(model(), 410).ticks.map((t) => t.value);
    expect(ticks).toEqual([10, 100]);
    expect(marksOf(model({ edges_us: [300, 412], counts: [1] })).ticks.length).toBeGreaterThan(1);
  });

  test('leave out labels that would overlap', () => {
    const lines = [0, 0.01, 0.2, 0.21].map((at) => ({ at, value: at }));
    expect(apart(lines, 1000, 46).map((l) => l.at)).toEqual([0, 0.2]);
  });
});

test('the pointer selects the nearest bar', () => {
  const m = marksOf(model(), 410);
  const last = m.bars.at(-1);
  expect(barAt(m, ((last?.left ?? 0) + (last?.right ?? 0)) / 2)).toBe(last);
  expect(barAt(m, (last?.right ?? 0) + 0.005)).toBe(last);
  expect(barAt(m, (last?.left ?? 0) - 0.05)).toBeUndefined();
});

test('the description matches the picture', () => {
  expect(rangeWords({ low: 2, high: 60 })).toBe('2 to 60 µs');
  expect(rangeWords({ low: 728, high: 1140 })).toBe('728 µs to 1.14 ms');
  expect(rangeWords({ high: 60 })).toBe('up to 60 µs');
  expect(rangeWords({ low: 60 })).toBe('at least 60 µs');
  expect(limitWords({ low: 10, high: 60 })).toBe('below 10 µs and above 60 µs');
  expect(histogramWords(model(), 410)).toBe(
    'Histogram of 7992 calls, both axes logarithmic; usual 2 to 62 µs; flagged above 113 µs; this execution took 410 µs.',
  );
});

test('a model with several modes flags times between them', () => {
  const two = model({
    normal_us: [
      { low: 236, high: 283 },
      { low: 492, high: 547 },
    ],
  });
  expect(usualWords(two)).toBe('236 to 283 µs, or 492 to 547 µs');
  expect(flaggedWords(two)).toBe('outside the usual times');
  expect(flaggedWords(model())).toBe('above 113 µs');
});

test('the picture has an accessible description', () => {
  render(<Histogram model={model()} value={410} />);
  expect(screen.getByRole('img').getAttribute('aria-label')).toContain(
    'this execution took 410 µs',
  );
  expect(screen.getByText('this one 410 µs')).toBeTruthy();
  expect(screen.getByText('flagged above 113 µs')).toBeTruthy();
});
