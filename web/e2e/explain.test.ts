// Explanations in a run with known causes: node02 is short of memory from 9 s to 13 s, and writes of rank 5 hang.
import { describe, expect, test } from 'vitest';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('demo');
  return s.start('view', `${s.dir}/run`);
});

describe('explain', () => {
  test.each(['dark', 'light'] as const)(
    'explains the costliest finding with one key, %s',
    async (scheme) => {
      await stage.visit(
        async (v) => {
          const { page } = v;
          await page.getByRole('region', { name: 'Costliest findings' }).waitFor();
          await page.keyboard.press('e');
          const drawer = page.getByRole('dialog', { name: 'Explanation' });
          await drawer.getByText(/executions ran while GPU Clock .* as in/).waitFor();
          const first = drawer.getByRole('heading', { level: 3 }).first();
          expect(await first.textContent()).toContain('GPU Clock');
          await v.isAccessible();
          await page.keyboard.press('Escape');
          await drawer.waitFor({ state: 'detached' });
          expect(page.url()).not.toContain('explain');
        },
        { scheme },
      );
    },
  );

  test('explains a box drawn in the heatmap', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      const map = page.getByRole('application', { name: /Heatmap/ });
      await map.waitFor();
      await page.getByRole('button', { name: 'Explain box' }).click();
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
      const drawer = page.getByRole('dialog', { name: 'Explanation' });
      await drawer.getByText(/executions ran while Memory Footprint/).waitFor();
      await page.waitForURL(/explain=.*rank%3D8/);
      // Fields of the selection explain nothing.
      expect(await drawer.getByText(/part of the selection/).count()).toBe(4);
      // The box has several functions.
      await drawer.getByRole('link', { name: 'Group by function' }).click();
      const groups = drawer.getByRole('table', { name: 'The selection by function' });
      await groups.getByRole('row').nth(2).waitFor();
      if (process.env.SHOTS !== undefined)
        await page.screenshot({ path: `${process.env.SHOTS}/functions.png` });
      await v.isAccessible();
      const worst = (await groups.getByRole('rowheader').first().textContent()) ?? '';
      await groups.getByRole('link', { name: `only function ${worst}`, exact: true }).click();
      await drawer.getByRole('button', { name: `only function=${worst}: remove` }).waitFor();
      await expect.poll(() => groups.getByRole('rowheader').count()).toBe(1);
      await drawer.getByText(/chimbuko explain .* --only '?function=/).waitFor();
      await drawer.getByRole('link', { name: 'Group by function' }).click();
      await groups.waitFor({ state: 'detached' });
    });
  });

  test('links a finding to its filter and survives a reload', async () => {
    await stage.visit(async ({ page }) => {
      await page
        .getByRole('region', { name: 'Costliest findings' })
        .getByRole('link', { name: /write\(\)/ })
        .click();
      await page.getByRole('link', { name: /^Explain/ }).click();
      const drawer = page.getByRole('dialog', { name: 'Explanation' });
      await drawer.getByText(/write\(\) ran on rank 5/).waitFor();
      await page.reload();
      await drawer.getByText(/write\(\) ran on rank 5/).waitFor();
      await drawer.getByRole('link', { name: 'Show findings' }).first().click();
      await page.waitForURL(/#\/findings\?rank=5/);
      await drawer.waitFor({ state: 'detached' });
    });
  });

  test('explains a box drawn in the strip plot', async () => {
    await stage.visit(async ({ page }) => {
      await page
        .getByRole('region', { name: 'Costliest findings' })
        .getByRole('link', { name: /push_boris/ })
        .click();
      const finding = page.getByRole('region', { name: /^Finding \d/ });
      await finding.getByRole('button', { name: 'Explain box' }).click();
      const sheet = finding.getByRole('img', { name: /Draw a box around executions/ });
      const box = await sheet.boundingBox();
      if (!box) throw new Error('the plot has no place');
      // All that lasted for long between 18 s and 30 s of 60 s.
      await page.mouse.move(box.x + 0.3 * box.width, box.y + 2);
      await page.mouse.down();
      await page.mouse.move(box.x + 0.4 * box.width, box.y + 0.5 * box.height, { steps: 4 });
      await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.9 * box.height, { steps: 4 });
      await page.mouse.up();
      const drawer = page.getByRole('dialog', { name: 'Explanation' });
      await drawer.getByText(/executions ran while GPU Clock \(MHz\) was 400 or less/).waitFor();
    });
  });

  test('filters and groups by any field and removes conditions', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('overview?explain=all');
      const drawer = page.getByRole('dialog', { name: 'Explanation' });
      const row = (name: string) =>
        drawer
          .getByRole('listitem')
          .filter({ has: page.getByRole('heading', { level: 3, name, exact: true }) });
      const chips = drawer.getByRole('list', { name: 'Conditions' });
      const selected = async () =>
        Number(
          /([\d\u202f,  ]+) executions? /
            .exec((await drawer.getByText(/ lost .* compared with/).textContent()) ?? '')?.[1]
            ?.replace(/\D/g, ''),
        );
      await drawer.getByText(/compared with/).waitFor();
      const all = await selected();

      // Exclude a rank from the selection and the comparison.
      await row('rank').getByRole('link', { name: 'Group by rank' }).click();
      const groups = drawer.getByRole('table', { name: 'The selection by rank' });
      await groups.getByRole('row').nth(2).waitFor();
      const counts = await groups.getByRole('row').locator('td:nth-child(2)').allTextContents();
      const sum = counts.reduce((n, c) => n + Number(c.replace(/\D/g, '')), 0);
      expect(sum).toBe(all);
      const worst = (await groups.getByRole('rowheader').first().textContent()) ?? '';
      const ofWorst = Number(
        (await groups.getByRole('row').nth(1).locator('td').first().textContent())?.replace(
          /\D/g,
          '',
        ),
      );
      await v.isAccessible();
      await groups.getByRole('link', { name: `without rank ${worst}`, exact: true }).click();
      await chips.getByText(`without rank=${worst}`).waitFor();
      await expect.poll(selected).toBe(all - ofWorst);
      await expect.poll(() => groups.getByRole('rowheader').allTextContents()).not.toContain(worst);

      // By the state of a node, of which a store knows nothing by itself: only what ran on
      // a node whose memory was short is left, which is that of node02.
      await row('Memory Footprint (VmRSS) (KB)').getByRole('link', { name: 'Only these' }).click();
      await chips.getByText(/only node-state:Memory Footprint/).waitFor();
      await expect.poll(selected).toBeLessThan(all - ofWorst);
      await row('host').getByText('node02', { exact: true }).first().waitFor();
      await page.reload();
      await chips.getByText(/only node-state:Memory Footprint/).waitFor();
      await drawer
        .getByText(/chimbuko explain .* --only 'node-state:Memory Footprint.*--without '?rank=/)
        .waitFor();

      for (const left of [1, 0]) {
        await chips.getByRole('button').first().click();
        await expect.poll(() => chips.getByRole('button').count()).toBe(left);
      }
      await expect.poll(selected).toBe(all);
      expect(page.url()).not.toMatch(/only|without/);
    });
  });

  test('explains a drawn lasso', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await page
        .getByRole('region', { name: 'Costliest findings' })
        .getByRole('link', { name: /push_boris/ })
        .click();
      const finding = page.getByRole('region', { name: /^Finding \d/ });
      await finding.getByText('Wrong if').first().waitFor(); // the evidence above the plot is complete
      await finding.getByRole('button', { name: 'lasso' }).click();
      const sheet = finding.getByRole('img', { name: /Draw a lasso around executions/ });
      await sheet.scrollIntoViewIfNeeded();
      const box = await sheet.boundingBox();
      if (!box) throw new Error('the plot has no place');
      // A circle around all that lasted for long between 18 s and 30 s of 60 s.
      const at = (turn: number) =>
        [
          box.x + (0.4 + 0.12 * Math.cos(turn)) * box.width,
          box.y + (0.45 + 0.44 * Math.sin(turn)) * box.height,
        ] as const;
      await page.mouse.move(...at(0));
      await page.mouse.down();
      for (let turn = 0.1; turn < 6.3; turn += 0.1) await page.mouse.move(...at(turn));
      await finding.locator('svg.lasso-drawn polygon').waitFor();
      if (process.env.SHOTS !== undefined)
        await page.screenshot({ path: `${process.env.SHOTS}/lasso.png` });
      await page.mouse.up();
      const drawer = page.getByRole('dialog', { name: 'Explanation' });
      await drawer.getByText(/executions ran while GPU Clock \(MHz\) was 400 or less/).waitFor();
      const corners = decodeURIComponent(decodeURIComponent(page.url()));
      expect(/lasso=([\d.:,]+)/.exec(corners)?.[1]?.split(',').length).toBeLessThanOrEqual(40);
      await drawer.getByRole('button', { name: 'inside the lasso: remove' }).click();
      await expect.poll(() => page.url()).not.toContain('lasso');
    });
  });

  test.each(['dark', 'light'] as const)('fits all widths, %s', async (scheme) => {
    for (const width of [1280, 800]) {
      await stage.visit(
        async (v) => {
          const { page } = v;
          const chosen = 'by=rank&without=step%3D0..3&only=host%3Dnode02&only=host%3Dnode03';
          await v.go(`findings?explain=${encodeURIComponent(chosen)}`);
          const drawer = page.getByRole('dialog', { name: 'Explanation' });
          await drawer.getByRole('table', { name: 'The selection by rank' }).waitFor();
          const inside = drawer.locator('.drawer-inside');
          expect(await inside.evaluate((e) => e.scrollWidth - e.clientWidth)).toBeLessThanOrEqual(
            0,
          );
          await v.isAccessible();
          if (process.env.SHOTS !== undefined)
            await page.screenshot({ path: `${process.env.SHOTS}/explain-${scheme}-${width}.png` });
        },
        { scheme, width, height: 900 },
      );
    }
  });
});
