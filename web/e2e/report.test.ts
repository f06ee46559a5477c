// The report as a file: opened offline, with and without scripts, and printed.
import { writeFileSync, readFileSync } from 'node:fs';
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { run } from './program.ts';
import { Stage } from './stage.ts';

const stage = new Stage((s) => {
  s.analyze('slow-rank');
  run('report', `${s.dir}/run`, '-o', `${s.dir}/report.html`);
  return undefined;
});
const file = `${stage.dir}/report.html`;

/** Opens the file offline and expects no requests and no errors. */
async function open(
  look: (page: Page) => Promise<void>,
  options: { scheme?: 'dark' | 'light'; scripts?: boolean; width?: number } = {},
  name = file,
) {
  const context = await stage.browser.newContext({
    offline: true,
    colorScheme: options.scheme ?? 'light',
    javaScriptEnabled: options.scripts ?? false,
    viewport: { width: options.width ?? 1200, height: 900 },
    bypassCSP: options.scripts ?? false, // axe is a script
  });
  const complaints: string[] = [];
  const page = await context.newPage();
  page.on('request', (r) => {
    if (r.url() !== `file://${name}` && !r.url().startsWith('data:'))
      complaints.push(`asks for ${r.url()}`);
  });
  page.on('requestfailed', (r) => complaints.push(`failed: ${r.url()}`));
  page.on('console', (m) => complaints.push(m.text()));
  page.on('dialog', (d) => {
    complaints.push(`dialog: ${d.message()}`);
    void d.dismiss();
  });
  try {
    await page.goto(`file://${name}`);
    await look(page);
    expect(complaints).toEqual([]);
  } finally {
    await context.close();
  }
}

describe('a report', () => {
  test('has the content of the page without network and scripts', async () => {
    const findings = run('findings', `${stage.dir}/run`, '--limit', '1', '--format', 'json');
    const [worst] = JSON.parse(findings) as { function: string }[];
    await open(async (page) => {
      const verdict = await page.getByRole('heading', { level: 1 }).textContent();
      expect(verdict).toContain('% efficient');
      expect(verdict).toContain((worst?.function ?? '?').replace(/\(\)$/, ''));
      for (const name of ['When and where', 'Findings', 'Evidence', 'Functions'])
        await page.getByRole('heading', { name, exact: true }).waitFor();
      await page
        .getByRole('img', { name: /^Heatmap of 8 rows/ })
        .first()
        .waitFor();
      await page
        .getByRole('img', { name: /^Histogram of/ })
        .first()
        .waitFor();
      await page
        .getByRole('img', { name: /^The execution and its surroundings/ })
        .first()
        .waitFor();
      await page.getByRole('link', { name: 'Evidence of 1' }).click();
      expect(page.url()).toContain('#finding-1');
    });
  });

  for (const scheme of ['dark', 'light'] as const) {
    test(`is accessible in the ${scheme} theme`, async () => {
      await open(
        async (page) => {
          await page.evaluate(axe.source);
          const findings = await page.evaluate(async () => {
            const { axe: checker } = window as unknown as { axe: typeof import('axe-core') };
            const { violations } = await checker.run(document, { resultTypes: ['violations'] });
            return violations.map((v) => `${v.id}: ${v.help}: ${v.nodes[0]?.html.slice(0, 200)}`);
          });
          expect(findings).toEqual([]);
        },
        { scheme, scripts: true },
      );
    });
  }

  test('does not scroll sideways on a small screen', async () => {
    for (const width of [1200, 420]) {
      await open(
        async (page) => {
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          expect(wide).toBeLessThanOrEqual(width);
        },
        { scripts: true, width },
      );
    }
  });

  test('prints', async () => {
    await open(async (page) => {
      const pdf = await page.pdf({ format: 'A4' });
      expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
      expect(pdf.length).toBeLessThan(3 << 20);
    });
  });

  test('runs no script', async () => {
    const name = `${stage.dir}/attacked.html`;
    const attack = '<script>document.title = "attacked"</script><img src="x" onerror="alert(1)">';
    writeFileSync(name, readFileSync(file, 'utf8').replace('</main>', `${attack}</main>`));
    const context = await stage.browser.newContext({ offline: true });
    const page = await context.newPage();
    await page.goto(`file://${name}`);
    expect(await page.title()).toBe('Chimbuko: run');
    await context.close();
  });
});
