// A nightly program that becomes slower in the third night.
import { writeFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, Visit } from './browser.ts';
import { directory, run, Service } from './program.ts';

const work = directory();
const nights = [1, 2, 3, 4].map((n) => `${work.path}/nightly-${n}`);
let browser: Browser;
let service: Service;
let two: Service;
let sentence: string;

beforeAll(async () => {
  const program = run('simulate', '--scenario', 'burst', '--show')
    .replace(/\n\[\[trouble\]\][\s\S]*$/, '\n')
    .replace('steps = 50', 'steps = 10');
  nights.forEach((night, i) => {
    const slow = program.replace(
      /^stream = .*$/m,
      'stream = { time = { lognormal = [590, 0.07] } }',
    );
    expect(slow).not.toBe(program);
    writeFileSync(`${night}.toml`, i >= 2 ? slow : program);
    run('simulate', '--scenario', `${night}.toml`, '--out', `${night}-traces`);
    run('analyze', `${night}-traces`, '--out', night);
  });
  const diff = JSON.parse(run('diff', ...nights, '--format', 'json')) as {
    verdict: { sentence: string };
  };
  sentence = diff.verdict.sentence;
  const others = nights.slice(0, 3).flatMap((night) => ['--compare', night]);
  service = new Service('view', nights[3] ?? '', ...others);
  two = new Service('view', nights[3] ?? '', '--compare', nights[0] ?? '');
  browser = await launch();
});

afterAll(async () => {
  await browser.close();
  await service.stop();
  await two.stop();
  work.remove();
});

async function visit(
  of: Service,
  look: (v: Visit) => Promise<void>,
  scheme: 'dark' | 'light' = 'dark',
) {
  const v = await Visit.to(browser, await of.address(), { scheme });
  try {
    await look(v);
    v.isWell();
  } finally {
    await v.leave();
  }
}

describe('runs of many nights', () => {
  test('show since when a function is slower, as diff does', async () => {
    expect(sentence).toMatch(/^stream is 2\.1 × slower since nightly-3: /);
    await visit(service, async (v) => {
      await v.go('compare');
      await v.page.getByRole('button', { name: 'Trend' }).click();
      const verdict = v.page.getByRole('main').getByRole('heading', { level: 1 });
      await verdict.filter({ hasText: 'stream is 2.1 × slower since nightly-3' }).waitFor();
      expect((await verdict.textContent())?.replaceAll('µs', 'us')).toBe(sentence);
      const charts = v.page.getByRole('region', { name: 'Trend' }).getByRole('application');
      expect(await charts.nth(1).getAttribute('aria-label')).toMatch(/^stream, .* worse: /);
    });
  });

  test('link to the two runs around a change, without a mouse', async () => {
    await visit(service, async (v) => {
      await v.go('compare?mode=trend');
      const chart = v.page.getByRole('application', { name: /^stream, / });
      await chart.focus();
      await v.page.keyboard.press('ArrowRight'); // the run of the change
      await chart.getByText('nightly-3').first().waitFor();
      await v.page.keyboard.press('Enter');
      await v.page.waitForURL(/a=.*nightly-2.*b=.*nightly-3.*mode=time/);
      await v.page.getByRole('heading', { name: /most of it in stream/ }).waitFor();
      await v.page.goBack();
      await chart.waitFor();
    });
  });

  test('compare on a click and filter by name', async () => {
    await visit(service, async (v) => {
      await v.go('compare?mode=trend');
      const chart = v.page.getByRole('application', { name: /^All functions, / });
      const box = await chart.boundingBox();
      if (!box) throw new Error('the chart is not shown');
      await v.page.mouse.click(box.x + box.width - 8, box.y + 30);
      await v.page.waitForURL(/a=.*nightly-3.*b=.*nightly-4/);
      await v.page.goBack();
      await v.page.getByRole('searchbox', { name: /Filter runs/ }).fill('nightly-4');
      await v.page.getByText('Fewer than two finished runs').waitFor();
    });
  });

  for (const scheme of ['dark', 'light'] as const) {
    for (const route of ['compare?mode=trend', 'compare?mode=trend&metric=lost']) {
      test(`${route} is accessible in the ${scheme} theme`, async () => {
        await visit(
          service,
          async (v) => {
            await v.go(route);
            await v.page.getByRole('application').first().waitFor();
            await v.isAccessible();
          },
          scheme,
        );
      });
    }
  }
});

describe('two runs', () => {
  test('are compared directly', async () => {
    await visit(two, async (v) => {
      await v.go('compare');
      await v.page.getByRole('button', { name: 'Metadata' }).waitFor();
      expect(await v.page.getByRole('button', { name: 'Trend' }).count()).toBe(0);
    });
  });
});
