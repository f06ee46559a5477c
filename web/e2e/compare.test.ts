// A good and a bad run of the same program and seed, compared.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { run, type Service } from './program.ts';
import { Stage } from './stage.ts';

let alone: Service;

/** The output of diff, which the page must match. */
interface Difference {
  verdict: { sentence: string };
  changes: { change: string; function: string }[];
  functions: { function: string }[];
}
let difference: Difference;

const stage = new Stage((s) => {
  const bad = run('simulate', '--scenario', 'burst', '--show');
  const good = bad.replace(/\n\[\[trouble\]\][\s\S]*$/, '\n');
  expect(good).not.toBe(bad);
  for (const [name, text] of [
    ['good', good],
    ['bad', bad],
  ] as const) {
    const toml = `${s.dir}/${name}.toml`;
    writeFileSync(toml, text);
    s.analyze(toml, name);
  }
  run('baseline', `${s.dir}/good`, `${s.dir}/good.baseline`);
  difference = JSON.parse(
    run('diff', `${s.dir}/good`, `${s.dir}/bad`, '--format', 'json'),
  ) as Difference;
  alone = s.start('view', `${s.dir}/good`);
  return s.start(
    ...['view', `${s.dir}/bad`],
    ...['--compare', `${s.dir}/good`, '--compare', `${s.dir}/good.baseline`],
  );
});

describe('two runs', () => {
  test('show the planted change first, as diff does', async () => {
    await stage.visit(async ({ page }) => {
      await page.getByRole('heading', { name: /% efficient/ }).waitFor();
      await page.keyboard.press('c');
      await page.waitForURL(/#\/compare/);
      const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
      await verdict.filter({ hasText: difference.verdict.sentence.slice(0, 60) }).waitFor();
      const first = difference.changes[0];
      expect(first?.change).toBe('new');
      const truth = readFileSync(`${stage.dir}/traces-bad/truth.jsonl`, 'utf8');
      expect(truth).toContain(JSON.stringify(first?.function).slice(1, -1));
      const row = page.getByRole('grid').getByRole('row').nth(1);
      expect(await row.textContent()).toContain(first?.function.replace(/\(\)$/, ''));
      expect(await row.getByRole('img').getAttribute('aria-label')).toMatch(/^0 µs in A, /);
    });
  });

  test('are the same from a baseline', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('compare');
      const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
      await verdict.waitFor();
      const before = await verdict.textContent();
      await page.getByRole('combobox', { name: 'Run A' }).selectOption('2:good');
      await page.waitForURL(/a=2:good/);
      await page.getByRole('grid').getByRole('row').nth(1).waitFor();
      expect(await verdict.textContent()).toBe(before);
      await page.reload();
      await page.getByRole('grid').getByRole('row').nth(1).waitFor();
      expect(await page.getByRole('combobox', { name: 'Run A' }).inputValue()).toBe('2:good');
    });
  });

  test('overlay the histograms of a change, without a mouse', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('compare?mode=time&kind=same,worse');
      await page.getByRole('grid').getByRole('row').nth(1).waitFor();
      await page.keyboard.press('j');
      await page
        .getByRole('complementary', { name: 'Change details' })
        .getByRole('img', { name: /Histograms of/ })
        .waitFor();
      await page.waitForURL(/sel=/);
    });
  });

  for (const scheme of ['dark', 'light'] as const) {
    for (const route of [
      'compare',
      'compare?mode=time&kind=same,worse',
      'compare?mode=flame',
      'compare?mode=flame&metric=lost&width=a',
      'compare?mode=metadata&all=1',
    ]) {
      test(`${route} is accessible in the ${scheme} theme`, async () => {
        await stage.visit(
          async (v) => {
            await v.go(route);
            await v.page.getByRole('button', { name: 'Swap A and B' }).waitFor();
            await v.page
              .getByRole('grid')
              .or(v.page.getByRole('application'))
              .or(v.page.getByText(/has no such time/))
              .first()
              .waitFor();
            if (route === 'compare') {
              await v.page.getByRole('grid').getByRole('row').nth(1).click();
              await v.page.getByRole('complementary', { name: 'Change details' }).waitFor();
            }
            await v.isAccessible();
          },
          { scheme },
        );
      });
    }
  }
});

describe('one run alone', () => {
  test('offers the run beside it, and explains how to add another', async () => {
    await stage.visit(
      async (v) => {
        const { page } = v;
        await v.go('compare');
        await page.getByText('Or add a run with --compare.').waitFor();
        await page.getByText(`chimbuko view ${stage.dir}/good --compare`).first().waitFor();
        await v.isAccessible();
        await page.getByRole('link', { name: 'bad', exact: true }).click();
        await page.waitForURL(/a=beside:bad/);
        const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
        await verdict.filter({ hasText: /lost .* less than A/ }).waitFor();
        await page.getByRole('button', { name: 'Other runs…' }).click();
        await page.getByRole('grid', { name: 'Runs to compare with' }).waitFor();
        await v.isAccessible();
      },
      {},
      await alone.address(),
    );
  });
});
