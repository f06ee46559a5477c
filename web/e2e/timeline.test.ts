// The timeline of all ranks: node02, ranks 8 to 11 of 16, is slow from 4 s to 7 s, so that the others wait in MPI. A counter has
// been added.
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { run } from './program.ts';
import { Stage } from './stage.ts';

const counter = `
[[program.counter]]
name = "Memory Footprint (VmRSS) (KB)"
seconds = 0.1
value = { normal = [900_000, 4000] }

[[trouble]]`;

const stage = new Stage((s) => {
  const scenario = run('simulate', '--scenario', 'slow-host', '--show');
  writeFileSync(`${s.dir}/counter.toml`, scenario.replace('\n[[trouble]]', counter));
  s.analyze(`${s.dir}/counter.toml`);
  return s.start('view', `${s.dir}/run`);
});

describe('timeline', () => {
  test.each([
    ['dark', 1440],
    ['light', 1024],
    ['light', 390],
  ] as const)('shows the activities of all ranks, %s, %i pixels', async (scheme, width) => {
    await stage.visit(
      async (v) => {
        const { page } = v;
        await v.go('timeline');
        const box = page.getByRole('application', { name: /Timeline of 16 ranks/ });
        await box.waitFor();
        await page.getByText('communication', { exact: true }).waitFor(); // in the legend
        await page.getByRole('grid', { name: 'Messages between ranks' }).waitFor();
        const memory = page.getByRole('application', { name: /VmRSS.*over time/ });
        await memory.focus();
        await page.keyboard.press('ArrowRight');
        await memory.getByText('all ranks', { exact: true }).waitFor();
        const colors = await box.locator('canvas').evaluate((c: HTMLCanvasElement) => {
          const data = c.getContext('2d')?.getImageData(0, 0, c.width, c.height).data ?? [];
          const seen = new Set<string>();
          for (let i = 0; i < data.length; i += 4 * 97)
            seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
          return seen.size;
        });
        expect(colors).toBeGreaterThan(2);
        if (process.env.SHOTS !== undefined)
          await page.screenshot({
            path: `${process.env.SHOTS}/timeline-${scheme}-${width}.png`,
            fullPage: true,
          });
        await v.isAccessible();
      },
      { scheme, width },
    );
  });

  test('zooms by wheel, brush and keyboard, and leads to what is stored', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await page.keyboard.press('9');
      await page.waitForURL(/#\/timeline/);
      const box = page.getByRole('application', { name: /Timeline of 16 ranks/ });
      await box.waitFor();
      const at = await box.boundingBox();
      if (!at) throw new Error('the timeline has no place');
      await page.mouse.move(at.x + at.width / 2, at.y + at.height / 2);
      await box.getByText('mostly', { exact: true }).waitFor();
      await page.mouse.wheel(0, -200);
      await page.waitForURL(/t0=[\d.]+&t1=/);
      await page.getByRole('button', { name: 'Show everything' }).click();
      await page.waitForURL((u) => !u.hash.includes('t0'));
      await page.mouse.move(at.x + 0.4 * at.width, at.y + 0.5 * at.height);
      await page.mouse.down();
      await page.mouse.move(at.x + 0.7 * at.width, at.y + 0.75 * at.height, { steps: 5 });
      await page.mouse.up();
      await page.waitForURL(/rank=8-1[12].*t0=/);
      await page.getByRole('application', { name: /Timeline of [45] ranks/ }).waitFor();
      await page.getByRole('application', { name: /VmRSS.*and of rank 8-1[12]/ }).waitFor();
      await v.isAccessible();
      await page.keyboard.press('Escape');
      await v.go('timeline');
      await box.focus();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/(findings\?.*rank=|e\/)/);
    });
  });
});
