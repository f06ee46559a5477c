import { describe, expect, test } from 'vitest';
import {
  ago,
  bare,
  bytes,
  clock,
  coreHours,
  count,
  duration,
  durationTick,
  elide,
  hasRank,
  pathTail,
  percent,
  plural,
  ranks,
  seconds,
  short,
  shortName,
  source,
  wall,
} from './index.ts';

/** Checks a function of one argument on several. */
function table<T>(f: (v: T) => string, cases: readonly (readonly [T, string])[]): void {
  for (const [input, want] of cases) expect(f(input), String(input)).toBe(want);
}

describe('durations', () => {
  test('have a suitable unit and three digits', () => {
    table(duration, [
      [undefined, '–'],
      [Number.NaN, '–'],
      [0, '0 µs'],
      [0.25, '250 ns'],
      [3, '3 µs'],
      [471, '471 µs'],
      [999.7, '1.00 ms'],
      [4712, '4.71 ms'],
      [47_120, '47.1 ms'],
      [999_900, '1.00 s'],
      [12_300_000, '12.3 s'],
      [245_000_000, '4 min 05 s'],
      [11_520_000_000, '3 h 12 min'],
      [-4712, '−4.71 ms'],
    ]);
  });

  test('have no redundant digits on an axis', () => {
    table(durationTick, [
      [1000, '1 ms'],
      [2500, '2.5 ms'],
      [1_000_000, '1 s'],
      [100, '100 µs'],
    ]);
  });

  test('format seconds and core-hours alike', () => {
    expect(seconds(0.0016)).toBe('1.60 ms');
    expect(seconds(0)).toBe('0 s');
    table(coreHours, [
      [612.4, '612 core-h'],
      [0.086, '0.086 core-h'],
      [0.000154, '554 ms core time'],
      [0, '0 core-h'],
    ]);
  });
});

describe('numbers', () => {
  test('group thousands from five digits', () => {
    table(count, [
      [undefined, '–'],
      [0, '0'],
      [1240, '1240'],
      [12_400, '12\u202f400'],
      [1_240_377, '1\u202f240\u202f377'],
      [-12_400, '−12\u202f400'],
    ]);
  });

  test('have three digits and a prefix when short', () => {
    table(short, [
      [950, '950'],
      [999.7, '1.00 k'],
      [1240, '1.24 k'],
      [51_000, '51 k'],
      [41_200_000, '41.2 M'],
      [2.5, '2.50'],
    ]);
    expect(bytes(18_880)).toBe('18.9 kB');
    expect(bytes(12)).toBe('12 B');
  });

  test('mark tiny percentages', () => {
    table(percent, [
      [0, '0 %'],
      [0.0004, '< 0.01 %'],
      [4.1234, '4.12 %'],
      [97.2, '97.2 %'],
      [100, '100 %'],
      [undefined, '–'],
    ]);
  });

  test('agree with their noun', () => {
    expect(plural(1, 'anomaly', 'anomalies')).toBe('1 anomaly');
    expect(plural(24, 'anomaly', 'anomalies')).toBe('24 anomalies');
  });
});

describe('times', () => {
  test('show hours, minutes and seconds since the start', () => {
    expect(clock(860)).toBe('00:14:20');
    expect(clock(3 * 3600 + 62)).toBe('03:01:02');
    expect(clock(undefined)).toBe('–');
  });

  test('have fractions in short spans', () => {
    expect(clock(2.962321, 3)).toBe('2.962 s');
    expect(clock(12.5, 40)).toBe('12.50 s');
    expect(clock(860.5, 20)).toBe('00:14:20.50');
    expect(clock(59.9996, 5)).toBe('00:01:00.000');
  });

  test('of day add the start and the elapsed time', () => {
    expect(wall('2026-11-15T09:32:25Z', 60)).toMatch(/^2026-11-1[456] \d\d:33:25\.000/);
    expect(wall(undefined, 60)).toBe('');
    expect(wall('nonsense', 60)).toBe('');
  });

  test('ago are rounded so that they do not flicker', () => {
    table(ago, [
      [400, 'just now'],
      [12_300, '12 s ago'],
      [300_000, '5 min ago'],
      [9_000_000, '3 h ago'],
    ]);
  });
});

describe('ranks', () => {
  test('are ranges with commas and a count of omitted ones', () => {
    expect(ranks([3, 0, 1, 2, 7])).toBe('0-3,7');
    expect(ranks([0, 2, 4, 6, 8, 9])).toBe('0,2,4,6, +2');
    expect(ranks([])).toBe('');
  });

  test('are parsed from text', () => {
    expect(hasRank('0,4-7', 5)).toBe(true);
    expect(hasRank('0,4-7', 3)).toBe(false);
    expect(hasRank('', 3)).toBe(true);
    expect(hasRank('x', 3)).toBe(false);
  });
});

describe('names of functions', () => {
  test('lose their source location, which is available separately', () => {
    const name = 'pack_halo() [{/home/user/apps/heat2d.cpp} {31,0}]';
    expect(bare(name)).toBe('pack_halo()');
    expect(source(name)).toBe('heat2d.cpp:31');
    expect(bare('f(int) [{a.cpp} {1,0}-{9,1}]')).toBe('f(int)');
    expect(bare('MPI_Allreduce()')).toBe('MPI_Allreduce()');
    expect(source('MPI_Allreduce()')).toBe('');
    expect(bare('[{file.c} {1,0}]')).toBe('[{file.c} {1,0}]');
  });

  test('are shortened in the middle by characters, not bytes', () => {
    expect(elide('abcdefghij', 7)).toBe('abc…hij');
    expect(elide('abc', 7)).toBe('abc');
    expect(elide('😀😀😀😀😀', 3)).toBe('😀…😀');
    expect(shortName('f(int) [{a.cpp} {1,0}]')).toBe('f(int)');
  });

  test('at the end of a call path show their position', () => {
    expect(pathTail('a > b > f [{x.c} {1,0}]')).toBe('… › b › f');
    expect(pathTail('a')).toBe('a');
    expect(pathTail('')).toBe('');
  });
});
