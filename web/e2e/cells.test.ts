// The heatmap of a run in which a write of rank 7 hangs for two seconds.
import { describe, test } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('io-stall');
  return s.start('view', `${s.dir}/run`);
});

describe('a cell of the heatmap', () => {
  test('leads to its finding, also long after the entry of the call', async () => {
    await stage.visit(async ({ page }) => {
      for (const part of [0.26, 0.3, 0.34, 0.37]) {
        await page.evaluate(() => {
          location.hash = '#/overview';
        });
        const map = page.getByRole('application', { name: /Heatmap/ });
        await map.waitFor();
        const box = await map.boundingBox();
        if (!box) throw new Error('the heatmap has no place');
        await page.mouse.click(box.x + part * box.width, box.y + (7.5 / 12) * box.height);
        await page.waitForURL(/#\/findings.*rank=7/);
        await page
          .getByRole('row', { name: /write\(\)/ })
          .first()
          .waitFor();
      }
    });
  });
});
