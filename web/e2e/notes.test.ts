// A finished run without findings, but with notes about normal behavior.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Stage } from './stage.ts';

interface Info {
  findings: { count: number; worst_notes: { summary: string }[] };
}

let summaries: string[];

const stage = new Stage((s) => {
  s.analyze('clean');
  const { findings } = JSON.parse(readFileSync(`${s.dir}/run/run.json`, 'utf8')) as Info;
  expect(findings.count).toBe(0);
  summaries = findings.worst_notes.map((n) => n.summary);
  expect(summaries.length).toBeGreaterThan(0);
  return s.start('view', `${s.dir}/run`);
});

describe('a run with notes', () => {
  test('lists the costliest ones in a line each', async () => {
    await stage.visit(async ({ page }) => {
      const notes = page.getByRole('region', { name: 'Normal behavior' });
      for (const summary of summaries) {
        await notes.getByRole('listitem').filter({ hasText: summary }).waitFor();
      }
      await notes.getByRole('link').first().click();
      await page.getByRole('row', { selected: true }).waitFor();
    });
  });
});
