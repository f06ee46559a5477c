// Two runs of the same program and seed, one of which had trouble, as somebody sees who
// wants to know what changed since the good one.
import { readFileSync, writeFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, Visit } from './browser.ts';
import { directory, run, Service } from './program.ts';

const work = directory();
let browser: Browser;
let service: Service;
let alone: Service;
let address: string;

/** What diff says in a terminal, which the page must say, too. */
interface Difference {
  verdict: { sentence: string };
  changes: { change: string; function: string }[];
  functions: { function: string }[];
}
let difference: Difference;

beforeAll(async () => {
  const bad = run('simulate', '--scenario', 'burst', '--show');
  const good = bad.replace(/\n\[\[trouble\]\][\s\S]*$/, '\n');
  expect(good).not.toBe(bad);
  for (const [name, text] of [
    ['good', good],
    ['bad', bad],
  ] as const) {
    const toml = `${work.path}/${name}.toml`;
    writeFileSync(toml, text);
    run('simulate', '--scenario', toml, '--out', `${work.path}/traces-${name}`);
    run('analyze', `${work.path}/traces-${name}`, '--out', `${work.path}/${name}`);
  }
  run('baseline', `${work.path}/good`, `${work.path}/good.baseline`);
  difference = JSON.parse(
    run('diff', `${work.path}/good`, `${work.path}/bad`, '--format', 'json'),
  ) as Difference;
  service = new Service(
    ...['view', `${work.path}/bad`],
    ...['--compare', `${work.path}/good`, '--compare', `${work.path}/good.baseline`],
  );
  alone = new Service('view', `${work.path}/good`);
  address = await service.address();
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await service.stop();
  await alone.stop();
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

describe('two runs', () => {
  test('differ by what was planted, which is on top, and by what diff says', async () => {
    await visit(async ({ page }) => {
      await page.getByRole('heading', { name: /core time/ }).waitFor();
      await page.keyboard.press('c');
      await page.waitForURL(/#\/compare/);
      const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
      await verdict.filter({ hasText: difference.verdict.sentence.slice(0, 60) }).waitFor();
      const first = difference.changes[0];
      expect(first?.change).toBe('new');
      const truth = readFileSync(`${work.path}/traces-bad/truth.jsonl`, 'utf8');
      expect(truth).toContain(JSON.stringify(first?.function).slice(1, -1));
      const row = page.getByRole('grid').getByRole('row').nth(1);
      expect(await row.textContent()).toContain(first?.function.replace(/\(\)$/, ''));
      expect(await row.getByRole('img').getAttribute('aria-label')).toMatch(/^0 µs in A, /);
    });
  });

  test('are the same from a baseline', async () => {
    await visit(async (v) => {
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

  test('show the histograms of a change over each other, without a mouse', async () => {
    await visit(async (v) => {
      const { page } = v;
      await v.go('compare?mode=time&kind=same,worse');
      await page.getByRole('grid').getByRole('row').nth(1).waitFor();
      await page.keyboard.press('j');
      await page
        .getByRole('complementary', { name: 'The chosen change' })
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
        await visit(async (v) => {
          await v.go(route);
          await v.page.getByRole('button', { name: 'Exchange A and B' }).waitFor();
          await v.page
            .getByRole('grid')
            .or(v.page.getByRole('application'))
            .or(v.page.getByText(/has no such time/))
            .first()
            .waitFor();
          if (route === 'compare') {
            await v.page.getByRole('grid').getByRole('row').nth(1).click();
            await v.page.getByRole('complementary', { name: 'The chosen change' }).waitFor();
          }
          await v.isAccessible();
        }, scheme);
      });
    }
  }
});

describe('one run alone', () => {
  test('says how another is given', async () => {
    const v = await Visit.to(browser, await alone.address(), { scheme: 'dark' });
    try {
      await v.go('compare');
      await v.page.getByText('Give a second run with --compare.').waitFor();
      await v.isAccessible();
      v.isWell();
    } finally {
      await v.leave();
    }
  });
});
