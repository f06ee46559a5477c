// Explanations of terms, and the scales of charts.
import { devices, type Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('slow-rank');
  return s.start('view', `${s.dir}/run`);
});

/** Expects an explanation entirely inside the window. */
async function isVisible(page: Page, words: string) {
  const box = page.locator('.term-box');
  await box.getByText(words).waitFor();
  const at = await box.boundingBox();
  const window = page.viewportSize();
  if (!at || !window) throw new Error('no box');
  expect(at.x).toBeGreaterThanOrEqual(0);
  expect(at.y).toBeGreaterThanOrEqual(0);
  expect(at.x + at.width).toBeLessThanOrEqual(window.width);
  expect(at.y + at.height).toBeLessThanOrEqual(window.height);
}

describe('terms', () => {
  for (const [scheme, width] of [
    ['dark', 1600],
    ['light', 400],
  ] as const) {
    test(`explain themselves by keyboard at ${width} px, accessible in the ${scheme} theme`, async () => {
      await stage.visit(
        async (v) => {
          const { page } = v;
          await v.go('findings');
          const term = page.getByRole('button', { name: 'Explain caused' });
          await term.focus();
          await page.keyboard.press('Enter');
          await isVisible(page, 'waited because of the affected calls');
          await v.isAccessible();
          await page.keyboard.press('Escape');
          await page.locator('.term-box').waitFor({ state: 'detached' });
          expect(await term.evaluate((e) => e === document.activeElement)).toBe(true);
          expect(page.url()).toContain('#/findings');
        },
        { scheme, width },
      );
    });
  }

  test('explain themselves by touch', async () => {
    const context = await stage.browser.newContext({ ...devices['Pixel 5'] });
    const page = await context.newPage();
    try {
      await page.goto(stage.address);
      await page.getByRole('button', { name: 'Explain own slowness' }).tap();
      await isVisible(page, 'It shows where the causes are');
      await page.getByRole('heading', { level: 1 }).first().tap();
      await page.locator('.term-box').waitFor({ state: 'detached' });
    } finally {
      await context.close();
    }
  });
});

test('scales are labeled, linear on request, and kept in the address across views', async () => {
  await stage.visit(async (v) => {
    const { page } = v;
    const heat = page.getByRole('group', { name: 'Scale of colors' });
    expect(
      await heat.getByRole('button', { name: 'logarithmic' }).getAttribute('aria-pressed'),
    ).toBe('true');
    await heat.getByRole('button', { name: 'linear' }).click();
    await page.waitForURL(/scale=linear/);
    await page.getByRole('link', { name: 'Functions', exact: true }).click();
    await page.waitForURL(/#\/functions.*scale=linear/);
    await page.getByRole('grid').getByRole('row').nth(1).click();
    await page.getByRole('img', { name: /both axes linear/ }).waitFor();
    await page
      .getByRole('group', { name: 'Scale of both axes' })
      .getByRole('button', { name: 'logarithmic' })
      .click();
    await page.getByRole('img', { name: /both axes logarithmic/ }).waitFor();
    expect(page.url()).not.toContain('scale=');
  });
});
