import { describe, expect, test } from 'vitest';
import {
  axisTicks,
  clampSpan,
  fit,
  pan,
  readSpan,
  sameSpan,
  shortest,
  toTime,
  toX,
  writeSpan,
  zoom,
} from './view.ts';

const bounds = { from: -1000, to: 9000 };

describe('zooming', () => {
  test('keeps the time under the pointer', () => {
    const before = { from: 0, to: 1000 };
    const after = zoom(before, 0.5, 250, bounds);
    expect(after).toEqual({ from: 125, to: 625 });
    expect(toX(250, after, 800)).toBeCloseTo(toX(250, before, 800));
  });

  test('stops at the full range', () => {
    expect(zoom({ from: 0, to: 1000 }, 1e6, 500, bounds)).toEqual(bounds);
  });

  test('ends at whole microseconds', () => {
    const closest = zoom({ from: 0, to: 3 }, 1e-6, 1, bounds);
    expect(closest.to - closest.from).toBe(shortest);
    expect(closest.from).toBeLessThanOrEqual(1);
    expect(closest.to).toBeGreaterThanOrEqual(1);
  });

  test('in and out restores the range', () => {
    const span = { from: 100, to: 600 };
    expect(sameSpan(zoom(zoom(span, 0.7, 350, bounds), 1 / 0.7, 350, bounds), span)).toBe(true);
  });
});

describe('moving', () => {
  test('pans by a fraction of the range', () => {
    expect(pan({ from: 0, to: 1000 }, 0.2, bounds)).toEqual({ from: 200, to: 1200 });
  });

  test('stops at the borders without zooming', () => {
    expect(pan({ from: 8500, to: 8900 }, 2, bounds)).toEqual({ from: 8600, to: 9000 });
    expect(pan({ from: -900, to: 100 }, -2, bounds)).toEqual({ from: -1000, to: 0 });
  });
});

test('fitting leaves room at both sides', () => {
  expect(fit(0, 100, bounds, 0.1)).toEqual({ from: -10, to: 110 });
});

test('a call without a duration can be fitted', () => {
  const span = fit(50, 50, bounds);
  expect(span.to).toBeGreaterThan(span.from);
});

test('empty bounds give a span', () => {
  expect(clampSpan({ from: 5, to: 5 }, { from: 0, to: 0 })).toEqual({ from: 0, to: shortest });
});

test('pixels and times convert both ways', () => {
  const span = { from: -50, to: 150 };
  expect(toTime(toX(33, span, 640), span, 640)).toBeCloseTo(33);
  expect(toTime(10, span, 0)).toBe(-50);
});

describe('the axis', () => {
  const f = (from: number, to: number, most: number) =>
    axisTicks({ from, to }, most).map((t) => t.label);

  test('has round times in a suitable unit', () => {
    expect(f(-3, 11, 4)).toEqual(['0 µs', '+5 µs', '+10 µs']);
    expect(f(-12_000, 22_000, 5)).toEqual(['−10 ms', '0 ms', '+10 ms', '+20 ms']);
    expect(f(0, 3e6, 3)).toEqual(['0 s', '+1 s', '+2 s', '+3 s']);
  });

  test('has fractions only if they differ', () => {
    expect(f(0, 1500, 3)).toEqual(['0 µs', '+500 µs', '+1000 µs', '+1500 µs']);
    expect(f(-2500, 2500, 3)).toEqual(['−2 ms', '0 ms', '+2 ms']);
  });

  test('never has steps below a microsecond', () => {
    expect(f(0, 2, 10)).toEqual(['0 µs', '+1 µs', '+2 µs']);
  });

  test('is empty without a range', () => {
    expect(f(1, 1, 5)).toEqual([]);
  });
});

describe('the address', () => {
  test('restores the range', () => {
    expect(readSpan(writeSpan({ from: -120.4, to: 20_000.6 }))).toEqual({ from: -120, to: 20_001 });
    expect(readSpan(writeSpan({ from: 0.25, to: 3.5 }))).toEqual({ from: 0.3, to: 3.5 });
  });

  test('is ignored if malformed', () => {
    for (const text of ['', '5', 'a,b', '5,5', '9,1', '1,2,3', ',4', 'Infinity,1']) {
      expect(readSpan(text), text).toBeUndefined();
    }
  });
});
