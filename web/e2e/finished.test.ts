// A finished run of the demo.
import { describe, expect, test } from 'vitest';
import { run } from './program.ts';
import { Stage } from './stage.ts';

let example: string; // an execution of the costliest finding

const stage = new Stage((s) => {
  s.analyze('demo');
  const findings = run('findings', `${s.dir}/run`, '--limit', '1', '--format', 'json');
  const [worst] = JSON.parse(findings) as { program: number; examples: string[] }[];
  example = `e/${worst?.program}:${worst?.examples[0]}`;
  return s.start('view', `${s.dir}/run`);
});

/** The views and text that shows when they have loaded. */
const views: [string, string, RegExp][] = [
  ['overview', 'heading', /% efficient/],
  ['findings', 'row', /deposit_current/],
  ['evidence of the costliest finding', 'heading', /push_boris/],
  ['functions', 'row', /deposit_current/],
  ['functions?mode=flame', 'heading', /Functions/],
  ['functions?mode=lost', 'heading', /Functions/],
  ['functions?mode=counters', 'row', /GPU Clock/],
  ['pipeline', 'heading', /Pipeline/],
  ['ranks', 'row', /rank 0/],
];

describe('a finished run', () => {
  test('names the costliest place, its start time and its function in the verdict', async () => {
    await stage.visit(async ({ page }) => {
      const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
      await verdict
        .filter({ hasText: /GPU .*of rank 13 \(node03\).* from 00:00:1\d.*push_boris/ })
        .waitFor();
    });
  });

  test('lists all planted troubles on the first page', async () => {
    await stage.visit(async ({ page }) => {
      const worst = page.getByRole('region', { name: 'Costliest findings' });
      for (const planted of [
        /deposit_current.*node02/,
        /write\(\).*node01/,
        /push_boris.*node03/,
      ]) {
        await worst.getByRole('link', { name: planted }).waitFor();
      }
    });
  });

  test('opens the evidence with two clicks and survives a reload', async () => {
    await stage.visit(async ({ page }) => {
      await page
        .getByRole('region', { name: 'Costliest findings' })
        .getByRole('link', { name: /write\(\)/ })
        .click();
      await page
        .getByRole('link', { name: /evidence/i })
        .last()
        .waitFor();
      await page
        .getByRole('main')
        .getByRole('link', { name: /evidence|5:\d+:\d+/i })
        .first()
        .click();
      await page.waitForURL(/#\/e\/0:5:/);
      await page
        .getByRole('heading', { name: /^write .* on rank 5/ })
        .first()
        .waitFor();
      const before = page.url();
      await page.reload();
      await page.getByRole('heading', { name: /^write .* on rank 5/ }).waitFor();
      expect(page.url()).toBe(before);
      expect(before).not.toContain('token');
    });
  });

  for (const scheme of ['dark', 'light'] as const) {
    for (const [route, role, name] of views) {
      test(`${route} is accessible in the ${scheme} theme`, async () => {
        await stage.visit(
          async (v) => {
            await v.go(route.startsWith('evidence') ? example : route);
            await v.page
              .getByRole(role as 'heading', { name })
              .first()
              .waitFor();
            await v.isAccessible();
          },
          { scheme },
        );
      });
    }
  }

  test('works without a mouse', async () => {
    await stage.visit(async ({ page }) => {
      await page.getByRole('heading', { name: /% efficient/ }).waitFor();
      await page.keyboard.press('2');
      await page
        .getByRole('row', { name: /deposit_current/ })
        .first()
        .waitFor();
      await page.keyboard.press('j');
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/e\/0:/);
      await page
        .getByRole('heading', { name: /on rank/ })
        .first()
        .waitFor();
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.keyboard.press('1');
      await page.waitForURL(/#\/overview/);
      await page.keyboard.press('/');
      await page.keyboard.type('sort_part');
      await page
        .getByRole('option', { name: /sort_particles/ })
        .first()
        .waitFor();
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/(functions|findings)/);
    });
  });

  test('keeps the label of a finding', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('findings');
      await page
        .getByRole('row', { name: /write\(\)/ })
        .first()
        .click();
      await page.getByRole('button', { name: 'Mute…' }).click();
      const form = page.getByRole('dialog').or(page.locator('form')).last();
      await form.getByRole('textbox', { name: 'Reason' }).fill('the file system was full');
      await form.locator('button[type=submit]').click();
      await page.getByRole('button', { name: 'Show 1 muted' }).waitFor();
      await page.reload();
      await page.getByRole('button', { name: 'Show 1 muted' }).waitFor();
    });
  });

  test('sorts and filters its tables and stores that in the address', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('findings');
      await page.getByRole('combobox', { name: 'Filter rows' }).fill('boris');
      await page
        .getByRole('row', { name: /deposit_current/ })
        .first()
        .waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Count', exact: true }).click();
      await page.waitForURL(/sort=/);
      await page.reload();
      await page
        .getByRole('row', { name: /push_boris/ })
        .first()
        .waitFor();
    });
  });
});
