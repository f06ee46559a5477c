// What is different about anomalies, in a run whose causes are known: memory of node02 runs
// short from 9 s to 13 s, and writes of rank 5 hang.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, Visit } from './browser.ts';
import { directory, run, Service } from './program.ts';

const work = directory();
let browser: Browser;
let service: Service;
let address: string;

beforeAll(async () => {
  run('simulate', '--scenario', 'demo', '--out', `${work.path}/traces`);
  run('analyze', `${work.path}/traces`, '--out', `${work.path}/run`);
  service = new Service('view', `${work.path}/run`);
  address = await service.address();
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await service.stop();
  work.remove();
});

async function visit(look: (v: Visit) => Promise<void>, scheme: 'dark' | 'light' = 'dark') {
  const v = await Visit.to(browser, address, { scheme });
  try {
    await look(v);
    v.isWell();
  } finally {
    await v.leave();
  }
}

describe('what is different', () => {
  test.each(['dark', 'light'] as const)(
    'about the worst issue is told by one key, %s',
    async (scheme) => {
      await visit(async (v) => {
        const { page } = v;
        await page.getByRole('region', { name: 'Worst issues' }).waitFor();
        await page.keyboard.press('e');
        const drawer = page.getByRole('dialog', { name: 'What is different' });
        await drawer.getByText(/deposit_current ran while Memory Footprint .* as in/).waitFor();
        const first = drawer.getByRole('heading', { level: 3 }).first();
        expect(await first.textContent()).toContain('Memory Footprint');
        await v.isAccessible();
        await page.keyboard.press('Escape');
        await drawer.waitFor({ state: 'detached' });
        expect(page.url()).not.toContain('explain');
      }, scheme);
    },
  );

  test('about a box of the heatmap is told when it is drawn', async () => {
    await visit(async ({ page }) => {
      const map = page.getByRole('application', { name: /Heatmap/ });
      await map.waitFor();
      await page.getByRole('button', { name: 'Explain a box' }).click();
      const box = await map.boundingBox();
      if (!box) throw new Error('the heatmap has no place');
      // Ranks 8 to 11 of 16, from 8 s to 14 s of 60 s.
      const at = (s: number, rank: number) =>
        [box.x + (s / 60) * box.width, box.y + ((rank + 0.5) / 16) * box.height] as const;
      await page.mouse.move(...at(8, 8));
      await page.mouse.down();
      await page.mouse.move(...at(11, 10), { steps: 4 });
      await page.mouse.move(...at(14, 11), { steps: 4 });
      await page.mouse.up();
      const drawer = page.getByRole('dialog', { name: 'What is different' });
      await drawer.getByText(/executions ran while Memory Footprint/).waitFor();
      await page.waitForURL(/explain=.*rank%3D8/);
      // What it was chosen by explains nothing.
      expect(await drawer.getByText(/the selection was made by it/).count()).toBe(4);
    });
  });

  test('about an issue leads to what it is filtered by, and a reload keeps the drawer', async () => {
    await visit(async ({ page }) => {
      await page
        .getByRole('region', { name: 'Worst issues' })
        .getByRole('link', { name: /write\(\)/ })
        .click();
      await page.getByRole('link', { name: /^Explain/ }).click();
      const drawer = page.getByRole('dialog', { name: 'What is different' });
      await drawer.getByText(/write\(\) ran on rank 5/).waitFor();
      await page.reload();
      await drawer.getByText(/write\(\) ran on rank 5/).waitFor();
      await drawer.getByRole('link', { name: 'Filter' }).first().click();
      await page.waitForURL(/#\/issues\?rank=5/);
      await drawer.waitFor({ state: 'detached' });
    });
  });

  test('about a box of the strip plot is told when it is drawn', async () => {
    await visit(async ({ page }) => {
      await page
        .getByRole('region', { name: 'Worst issues' })
        .getByRole('link', { name: /push_boris/ })
        .click();
      const issue = page.getByRole('region', { name: /^Issue \d/ });
      await issue.getByRole('button', { name: 'Explain a box' }).click();
      const sheet = issue.getByRole('img', { name: /Draw a box around executions/ });
      const box = await sheet.boundingBox();
      if (!box) throw new Error('the plot has no place');
      // All that lasted for long between 18 s and 30 s of 60 s.
      await page.mouse.move(box.x + 0.3 * box.width, box.y + 2);
      await page.mouse.down();
      await page.mouse.move(box.x + 0.4 * box.width, box.y + 0.5 * box.height, { steps: 4 });
      await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.9 * box.height, { steps: 4 });
      await page.mouse.up();
      const drawer = page.getByRole('dialog', { name: 'What is different' });
      await drawer.getByText(/push_boris.* ran while GPU Clock \(MHz\) was 400 or less/).waitFor();
    });
  });
});
