// Ranks compared with their peers: node02, ranks 8 to 11 of 16, is slow from 4 s to 7 s.
import { describe, expect, test } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('slow-host');
  return s.start('view', `${s.dir}/run`);
});

describe('ranks', () => {
  test.each(['dark', 'light'] as const)('shows the slow host, %s', async (scheme) => {
    await stage.visit(
      async (v) => {
        const { page } = v;
        await v.go('ranks?by=host');
        const table = page.getByRole('grid', { name: 'Ranks compared with their peers' });
        const first = table.getByRole('row').nth(1);
        await first.filter({ hasText: /node02.*(3\.9|4\.0)\d s to 7\.\d+ s/ }).waitFor();
        await page.getByRole('heading', { name: 'Efficiency over time' }).waitFor();
        await page.getByText(/% parallel = .* load balance/).waitFor();
        await page.getByText('no data', { exact: true }).first().waitFor(); // in the legend
        if (process.env.SHOTS !== undefined)
          await page.screenshot({ path: `${process.env.SHOTS}/ranks-hosts-${scheme}.png` });
        await v.isAccessible();

        await page
          .getByRole('group', { name: 'Rows' })
          .getByRole('button', { name: 'Ranks' })
          .click();
        await table.getByRole('row').nth(16).waitFor();
        const map = page.getByRole('application', { name: /Heatmap of the ratio to peers/ });
        const box = await map.boundingBox();
        if (!box) throw new Error('the heatmap has no place');
        await page.mouse.move(box.x + 0.45 * box.width, box.y + (9.5 / 16) * box.height);
        await map.getByText('ratio here', { exact: true }).waitFor();
        await page.mouse.down();
        await page.mouse.up();
        const detail = page.getByRole('complementary', { name: 'rank 9' });
        await detail.getByText(/node02 takes 2\.\d+× as long as its 12 peers/).waitFor();
        await detail
          .getByRole('table', { name: /take longer/ })
          .getByRole('link', { name: /advect_tracer/ })
          .waitFor();
        await detail
          .getByRole('table', { name: /with the most time/ })
          .getByRole('link', { name: /advect_tracer/ })
          .waitFor();
        if (process.env.SHOTS !== undefined)
          await page.screenshot({ path: `${process.env.SHOTS}/ranks-${scheme}.png` });
        await v.isAccessible();
      },
      { scheme },
    );
  });

  test('shows the evidence of the slow host in its finding', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('findings');
      await page.getByRole('row', { name: /slow-peer/ }).click();
      const chart = page.getByRole('img', { name: /Time divided by that of peers/ });
      await chart.waitFor();
      expect(await chart.getAttribute('aria-label')).toMatch(
        /2\.\d+× while it was slow, 1\.00× otherwise/,
      );
      await page.getByText(/strong: slower than 12 peers at equal work/).waitFor();
      await page.getByRole('table', { name: /Functions that take longer/ }).waitFor();
      await page.getByRole('table', { name: /compared with a typical peer/ }).waitFor();
      if (process.env.SHOTS !== undefined)
        await page.screenshot({ path: `${process.env.SHOTS}/finding.png` });
      await v.isAccessible();
    });
  });

  test('works without a mouse and leads to the findings of a rank', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await page.keyboard.press('7');
      await page.waitForURL(/#\/ranks/);
      await page.getByRole('row', { name: /rank 8/ }).waitFor();
      await page.keyboard.press('j');
      await page.waitForURL(/sel=/);
      const detail = page.getByRole('complementary');
      await detail.getByRole('link', { name: /Functions that lost time/ }).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/findings\?rank=/);
    });
  });

  test('shows the ranks of a host and survives a reload', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('ranks?by=host');
      await page.getByRole('row', { name: /node02/ }).click();
      await page.getByRole('link', { name: 'Show its 4 ranks' }).click();
      const table = page.getByRole('grid', { name: 'Ranks compared with their peers' });
      await expect.poll(() => table.getByRole('row').count()).toBe(5);
      await page.reload();
      await expect.poll(() => table.getByRole('row').count()).toBe(5);
      expect(page.url()).toContain('rank=8-11');
    });
  });
});
