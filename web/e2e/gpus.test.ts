// How the GPUs of a training with four ranks spent their time, from files of PyTorch's profiler.
import { describe, expect, test } from 'vitest';
import { writeTraining } from './kineto.ts';
import { run } from './program.ts';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  writeTraining(`${s.dir}/traces`, 4);
  run('analyze', `${s.dir}/traces`, '--out', `${s.dir}/run`);
  return s.start('view', `${s.dir}/run`);
});

const looks = [
  { scheme: 'dark', width: 1440, height: 900 },
  { scheme: 'light', width: 1024, height: 768 },
  { scheme: 'light', width: 390, height: 844 },
] as const;

describe('GPUs', () => {
  test.each(looks)('shows ranks, collectives and steps, $scheme, $width wide', async (look) => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('gpus');
      const table = page.getByRole('grid', { name: 'Time of GPUs by rank' });
      await table.getByRole('row').nth(4).waitFor();
      const operation = page
        .getByRole('grid', { name: /Collective operations/ })
        .getByRole('row', { name: /allreduce/ });
      await operation.filter({ hasText: /26\.2 MB.*GB\/s/ }).waitFor();
      await page.getByText(/clocks of ranks are up to 300 µs apart/).waitFor();
      await v.isAccessible();

      const bars = page.getByRole('img', { name: /Time of GPUs of 4 ranks/ });
      const box = await bars.boundingBox();
      if (!box) throw new Error('the chart has no place');
      await page.mouse.move(box.x + (2.5 / 4) * box.width, box.y + box.height / 2);
      await bars.getByText(/^rank 2: /).waitFor();
      await page.mouse.down();
      await page.mouse.up();
      const detail = page.getByRole('complementary', { name: 'rank 2' });
      await detail.getByRole('img', { name: /24 training steps/ }).waitFor();
      if (process.env.SHOTS !== undefined)
        await page.screenshot({
          path: `${process.env.SHOTS}/gpus-${look.scheme}-${look.width}.png`,
        });
      await v.isAccessible();
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
      );
      expect(wide).toBe(false); // nothing but tables scrolls sideways
    }, look);
  });

  test('works without a mouse: the late step of rank 2 has the longest host wait', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await page.getByRole('link', { name: 'GPUs' }).waitFor();
      await page.keyboard.press('8');
      await page.waitForURL(/#\/gpus/);
      await page
        .getByRole('grid', { name: 'Time of GPUs by rank' })
        .getByRole('row')
        .nth(4)
        .waitFor();
      for (let i = 0; i < 3; i++) await page.keyboard.press('j');
      await page.waitForURL(/sel=0(:|%3A)2/);
      const steps = page.getByRole('grid', { name: /by training step/ });
      await steps.getByRole('button', { name: /Host wait/ }).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(/stepsort=/);
      if (!page.url().includes('stepsort=-')) await page.keyboard.press('Enter');
      await page.waitForURL(/stepsort=-host/);
      const link = steps.getByRole('row').nth(1).getByRole('link', { name: '17' });
      await link.focus();
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/findings\?rank=2&t0=0\.34/);
    });
  });
});
