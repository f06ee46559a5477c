// Charts as SVG and PNG, tables as files, and the page on paper, of a run with a slow host.
import { readFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('slow-host');
  return s.start('view', `${s.dir}/run`);
});

/** Presses an entry of an Export menu and returns the file. */
async function save(
  page: Page,
  menu: Locator,
  entry: string,
): Promise<{ name: string; data: Buffer }> {
  await menu.getByText('Export').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    menu.getByRole('button', { name: entry }).click(),
  ]);
  await page.keyboard.press('Escape');
  const name = download.suggestedFilename();
  if (process.env.SHOTS !== undefined) await download.saveAs(`${process.env.SHOTS}/${name}`);
  return { name, data: readFileSync(await download.path()) };
}

/** What an SVG document contains. */
async function inspect(page: Page, svg: string) {
  return page.evaluate((text) => {
    const doc = new DOMParser().parseFromString(text, 'image/svg+xml');
    return {
      valid: doc.querySelector('parsererror') === null,
      words: [...doc.querySelectorAll('text')].map((t) => t.textContent),
      shapes: doc.querySelectorAll('rect, path, line, circle, polyline').length,
      images: doc.querySelectorAll('image').length,
      variables: text.includes('var(--'),
    };
  }, svg);
}

const views = [
  ['overview', 2, /rank|node/],
  ['timeline', 2, /rank 0/],
  ['ranks', 2, /parallel efficiency/],
  ['functions?mode=flame', 1, /step/],
] as const;

describe('figures', () => {
  test.each(views)('of %s are complete, in vectors', async (view, figures, words) => {
    for (const scheme of ['dark', 'light'] as const)
      await stage.visit(
        async (v) => {
          const { page } = v;
          await v.go(view);
          const menus = page.locator('.export-figure');
          await expect.poll(() => menus.count()).toBe(figures);
          await page.waitForLoadState('networkidle');
          for (let i = 0; i < figures; i++) {
            const { name, data } = await save(page, menus.nth(i), 'Download SVG');
            expect(name).toMatch(/^run-.*\.svg$/);
            const svg = await inspect(page, data.toString());
            expect(svg, name).toMatchObject({ valid: true, images: 0, variables: false });
            expect(svg.shapes, name).toBeGreaterThan(1); // one is the background
            expect(svg.words.at(-1)).toMatch(/^run run, Chimbuko \S+/);
            expect(svg.words.join('\n'), name).not.toMatch(/Export|Download/);
            if (i === 0) expect(svg.words.join('\n')).toMatch(words);
            const png = (await save(page, menus.nth(i), 'Download PNG')).data;
            expect(png.subarray(1, 4).toString()).toBe('PNG');
            expect(png.readUInt32BE(16), 'twice as wide as the figure').toBeGreaterThan(600);
          }
        },
        { scheme },
      );
  });
});

describe('tables', () => {
  test('become CSV and Markdown', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('timeline');
      const menu = page.locator('.export-table').first();
      const csv = (await save(page, menu, 'Download CSV')).data.toString();
      expect(csv).toMatch(/^Rank,Host,.*own code/);
      expect(csv.trim().split('\r\n')).toHaveLength(17);
      const markdown = (await save(page, menu, 'Download Markdown')).data.toString();
      expect(markdown).toMatch(/\| --- \|[^]*ranks, run run, Chimbuko \S+\n$/);
    });
  });
});

describe('on paper', () => {
  test.each(['overview', 'findings', 'functions', 'ranks', 'timeline'])(
    '%s is light, without navigation and not clipped',
    async (view) => {
      await stage.visit(
        async (v) => {
          const { page } = v;
          await v.go(view);
          await page.locator('main section.panel').first().waitFor();
          await page.waitForLoadState('networkidle');
          await page.emulateMedia({ media: 'print' });
          await page.setViewportSize({ width: 1046, height: 720 }); // A4 landscape without margins
          await expect
            .poll(() => page.evaluate(() => document.documentElement.dataset.theme))
            .toBe('light');
          expect(
            await page
              .locator('.rail, .bar-tools, .export-figure summary')
              .filter({ visible: true })
              .count(),
          ).toBe(0);
          const clipped = await page.evaluate(() =>
            [...document.querySelectorAll('main, .panel, .table-scroll')]
              .filter(
                (e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1,
              )
              .map(
                (e) =>
                  `${e.className} ${e.scrollWidth}>${e.clientWidth} ${e.scrollHeight}>${e.clientHeight}`,
              ),
          );
          expect(clipped).toEqual([]);
          const pdf = await page.pdf({
            preferCSSPageSize: true,
            ...(process.env.SHOTS === undefined
              ? {}
              : { path: `${process.env.SHOTS}/${view}.pdf` }),
          });
          expect(pdf.subarray(0, 4).toString()).toBe('%PDF');
        },
        { scheme: 'dark' },
      );
    },
  );
});
