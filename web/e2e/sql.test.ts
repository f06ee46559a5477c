// The SQL drawer in a browser with a real store.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { run } from './program.ts';
import { Stage } from './stage.ts';

const byFunction =
  'SELECT func, count(*) AS n, sum(lost_time)::BIGINT AS lost_us FROM anomalies GROUP BY func ORDER BY lost_us DESC';

const stage = new Stage((s) => {
  s.analyze('slow-rank');
  return s.start('view', `${s.dir}/run`);
});

describe('SQL queries', () => {
  test('run by keyboard with the results of chimbuko query', async () => {
    const output = run('query', `${stage.dir}/run`, byFunction, '--format', 'json');
    const [worst] = JSON.parse(output) as { func: string; n: number; lost_us: number }[];
    await stage.visit(async ({ page }) => {
      await page.keyboard.press('`');
      await page.getByRole('textbox', { name: 'SQL statement' }).waitFor();
      await page.keyboard.type(byFunction);
      await page.keyboard.press('Control+Enter');
      const first = page.getByRole('grid', { name: 'Query result' }).getByRole('row').nth(1);
      await first.waitFor();
      expect(await first.getByRole('gridcell').allTextContents()).toEqual([
        worst?.func,
        String(worst?.n),
        String(worst?.lost_us),
      ]);
      const before = page.url();
      expect(before).toContain('sql=SELECT');
      await page.reload();
      await first.waitFor();
      expect(page.url()).toBe(before);
      // The drawer survives a change of the view, and Escape closes it.
      await page.getByRole('link', { name: 'Findings', exact: true }).click();
      await page.waitForURL(/#\/findings.*sql=SELECT/);
      await first.waitFor();
      await page.getByRole('textbox', { name: 'SQL statement' }).press('Escape');
      await first.waitFor({ state: 'detached' });
      expect(page.url()).not.toContain('sql=');
    });
  });

  test('report the position of errors', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go(`overview?sql=${encodeURIComponent('SELECT func,\n  nosuch\nFROM anomalies')}`);
      await page.getByRole('alert').getByText('"nosuch" not found').waitFor();
      await page.getByRole('button', { name: 'Go to line 2, column 3' }).click();
      const at = await page
        .getByRole('textbox', { name: 'SQL statement' })
        .evaluate((e) => (e as HTMLTextAreaElement).selectionStart);
      expect(at).toBe('SELECT func,\n  '.length);
      expect(v.forget().join()).toContain('400'); // the browser logs the refusal
    });
  });

  test('refuse changes', async () => {
    await stage.visit(async (v) => {
      await v.go(`overview?sql=${encodeURIComponent('DELETE FROM executions')}`);
      await v.page.getByRole('alert').getByText('only read-only queries are allowed').waitFor();
      v.forget();
    });
  });

  test('have working examples', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await v.go('overview?sql=--');
      const examples = page.locator('.sql-drawer details').first();
      await examples.locator('summary').click();
      const names = await examples.getByRole('button').allTextContents();
      expect(names.length).toBeGreaterThan(15);
      for (const name of names) {
        if ((await examples.getAttribute('open')) === null)
          await examples.locator('summary').click();
        await examples.getByRole('button', { name, exact: true }).click();
        await page.locator('.sql-answer .waiting').waitFor({ state: 'detached' });
        await page.getByRole('grid', { name: 'Query result' }).waitFor();
        expect(await page.getByRole('alert').count(), name).toBe(0);
      }
    });
  });

  for (const scheme of ['dark', 'light'] as const) {
    for (const width of [400, 1600]) {
      test(`are helped by the schema at ${width} px, accessible in the ${scheme} theme`, async () => {
        await stage.visit(
          async (v) => {
            const { page } = v;
            await page.setViewportSize({ width, height: 900 });
            await v.go('overview?sql=--');
            const schema = page.getByRole('region', { name: 'Schema' });
            if (width < 1000) {
              expect(await schema.count()).toBe(0);
              await page.getByRole('button', { name: 'Schema' }).click();
            }
            await page
              .getByRole('textbox', { name: 'SQL statement' })
              .fill('SELECT  FROM anomalies');
            await page
              .getByRole('textbox', { name: 'SQL statement' })
              .evaluate((e) => (e as HTMLTextAreaElement).setSelectionRange(7, 7));
            await schema.getByRole('button', { name: 'Columns of anomalies', exact: true }).click();
            const columns = schema.getByRole('list', { name: 'anomalies', exact: true });
            await columns.getByRole('button', { name: 'rank', exact: true }).click();
            await v.isAccessible();
            await page.keyboard.press('Control+Enter');
            await page.getByRole('columnheader', { name: 'rank' }).waitFor();
            const manual = await page
              .getByRole('link', { name: 'Documentation' })
              .evaluate(async (a) => {
                const answer = await fetch((a as HTMLAnchorElement).href);
                return `${answer.headers.get('Content-Type')} ${await answer.text()}`;
              });
            expect(manual).toMatch(/^text\/plain; charset=utf-8 # Querying a run in SQL/);
          },
          { scheme },
        );
      });
    }
    for (const kind of ['table', 'bar', 'line', 'scatter']) {
      test(`are shown as ${kind}, accessible in the ${scheme} theme`, async () => {
        await stage.visit(
          async (v) => {
            await v.go(`overview?sql=${encodeURIComponent(byFunction)}&sqlchart=${kind}`);
            if (kind === 'table')
              await v.page.getByRole('grid', { name: 'Query result' }).waitFor();
            else {
              const chart = v.page.getByRole('img', { name: /^lost_us by func/ });
              await chart.locator('canvas').waitFor();
              const box = await chart.boundingBox();
              expect(box?.height).toBeGreaterThan(120);
            }
            await v.isAccessible();
          },
          { scheme },
        );
      });
    }
  }

  test('are copied for a terminal', async () => {
    await stage.visit(async (v) => {
      const { page } = v;
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await v.go(`overview?sql=${encodeURIComponent("SELECT 'a' AS x")}`);
      await page.getByRole('grid', { name: 'Query result' }).waitFor();
      const copied = async (what: string) => {
        await page.getByText('Copy as', { exact: false }).first().click();
        await page.getByRole('button', { name: what, exact: true }).click();
        await page.getByText('copied').waitFor();
        return page.evaluate(() => navigator.clipboard.readText());
      };
      expect(await copied('Command line')).toBe(
        `chimbuko query '${stage.dir}/run' --run 'run' 'SELECT '\\''a'\\'' AS x'`,
      );
      expect(await copied('curl')).toContain('/api/v1/runs/run/sql');
    });
  });

  for (const [format, begin] of [
    ['CSV', 'func,n,lost_us'],
    ['Parquet', 'PAR1'],
  ] as const) {
    test(`are exported as ${format}`, async () => {
      await stage.visit(async (v) => {
        const { page } = v;
        await v.go(`overview?sql=${encodeURIComponent(byFunction)}`);
        await page.getByRole('grid', { name: 'Query result' }).waitFor();
        await page.locator('.sql-drawer summary', { hasText: 'Export' }).first().click();
        const download = page.waitForEvent('download');
        await page.getByRole('button', { name: format, exact: true }).click();
        const file = await download;
        expect(file.suggestedFilename()).toBe(`answer.${format.toLowerCase()}`);
        expect(readFileSync(await file.path(), 'latin1').slice(0, begin.length)).toBe(begin);
        await page.getByText(/rows exported/).waitFor();
      });
    });
  }
});
