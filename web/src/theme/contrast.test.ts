import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const css = readFileSync('src/theme/tokens.css', 'utf8');
const [, dark = '', light = ''] =
  /:root \{([^}]*)\}[^{]*:root\[data-theme='light'\] \{([^}]*)\}/s.exec(css) ?? [];

function tokens(block: string): Map<string, string> {
  return new Map(
    [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})\s*;/g)].map((m) => [m[1] ?? '', m[2] ?? '']),
  );
}

/** Luminance as WCAG 2 defines it. */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((i) => {
    const c = parseInt(hex.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const texts = ['ink', 'ink-2', 'ink-3', 'accent', 'good', 'watch', 'bad', 'unknown'];
const grounds = ['ground', 'panel', 'raised', 'hover'];

describe.each([
  ['dark', tokens(dark)],
  ['light', tokens(light)],
])('the %s theme', (_, t) => {
  test('has readable text on every background', () => {
    for (const text of texts) {
      for (const ground of grounds) {
        expect(
          contrast(t.get(text) ?? '', t.get(ground) ?? ''),
          `${text} on ${ground}`,
        ).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  test('has readable text on colored backgrounds', () => {
    for (const level of ['good', 'watch', 'bad', 'accent']) {
      expect(
        contrast(t.get('ink') ?? '', t.get(`${level}-ground`) ?? ''),
        level,
      ).toBeGreaterThanOrEqual(4.5);
    }
    for (const change of ['same', 'less', 'more']) {
      expect(
        contrast(t.get('ink') ?? '', t.get(`diff-${change}`) ?? ''),
        change,
      ).toBeGreaterThanOrEqual(4.5);
    }
    expect(contrast(t.get('on-accent') ?? '', t.get('accent') ?? '')).toBeGreaterThanOrEqual(4.5);
  });

  test('has visible marks', () => {
    for (const [name, color] of t) {
      if (!/^(kind|group|run)-/.test(name)) continue;
      expect(contrast(color, t.get('panel') ?? ''), name).toBeGreaterThanOrEqual(3);
    }
  });
});
