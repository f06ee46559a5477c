import { expect, test } from 'vitest';
import { functionColor, hash, kinds, kindVar, kindWords, ramp } from './index.ts';

test('a function always has the same color', () => {
  expect(functionColor('pack_halo()', 'user', 'dark')).toBe(
    functionColor('pack_halo()', 'user', 'dark'),
  );
  expect(hash('pack_halo()')).toBe(hash('pack_halo()'));
  expect(functionColor('a', 'mpi', 'dark')).not.toBe(functionColor('b', 'mpi', 'dark'));
});

test('functions stay within the hue of their group', () => {
  for (const [group, hue] of [
    ['mpi', 210],
    ['gpu', 160],
    ['io', 40],
    ['user', 320],
    ['nonsense', 320],
  ] as const) {
    for (const name of ['a', 'b', 'MPI_Send', 'cudaMemcpy']) {
      const got = Number(/^hsl\((\d+)/.exec(functionColor(name, group, 'light'))?.[1]);
      expect(Math.abs(got - hue), `${group} ${name}`).toBeLessThanOrEqual(15);
    }
  }
});

test('every kind has a color of its own, and words', () => {
  for (const kind of kinds) {
    expect(kindVar(kind)).toBe(`var(--kind-${kind})`);
    expect(kindWords[kind], kind).toBeTruthy();
  }
  expect(kinds).toContain('rare');
});

test('unknown kinds have a color', () => {
  expect(kindVar('slow')).toBe('var(--kind-slow)');
  expect(kindVar('nonsense')).toBe('var(--kind-other)');
});

test('the scale brightens in the dark theme and darkens in the light one', () => {
  const light = (t: Uint8ClampedArray, i: number) =>
    0.2126 * (t[i * 3] ?? 0) + 0.7152 * (t[i * 3 + 1] ?? 0) + 0.0722 * (t[i * 3 + 2] ?? 0);
  for (const [theme, sign] of [
    ['dark', 1],
    ['light', -1],
  ] as const) {
    const table = ramp(theme);
    for (let i = 8; i < 256; i += 8) {
      expect(sign * (light(table, i) - light(table, i - 8)), `${theme} ${i}`).toBeGreaterThan(-0.5);
    }
  }
});
