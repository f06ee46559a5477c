// Replay of statistics packets in the format of the original parameter server.
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Visit } from './browser.ts';
import { Stage } from './stage.ts';

const sums = (accumulate: number, count = 1, mean = accumulate / count) => ({
  accumulate,
  count,
  kurtosis: 0,
  maximum: mean,
  mean,
  minimum: mean,
  skewness: 0,
  stddev: 0,
});

/** A packet of a second in which rank 3 had so many anomalies. */
function packet(second: number, anomalies: number) {
  const at = 1_700_000_000_000_000 + second * 1_000_000;
  const span = { min_timestamp: at, max_timestamp: at + 900_000 };
  const data = {
    ...span,
    first_io_step: second,
    last_io_step: second,
    count: sums(anomalies),
    score: sums(9),
    severity: sums(5000),
  };
  return {
    version: 2,
    created_at: 1_700_000_000_000 + second * 1000,
    anomaly_stats: {
      created_at: 1_700_000_000_000 + second * 1000,
      anomaly: [
        {
          key: '0:3',
          stats: sums(anomalies * (second + 1), second + 1),
          data: [{ app: 0, rank: 3, step: second, n_anomalies: anomalies, ...span }],
        },
      ],
      func: [
        {
          app: 0,
          fid: 7,
          name: 'exchange<img src=x onerror=alert(1)>(int)',
          stats: sums(anomalies * (second + 1), second + 1),
          inclusive: sums(0, 400, 90),
          exclusive: sums(0, 400, 80),
        },
      ],
    },
    anomaly_metrics: [
      { app: 0, rank: 3, fid: 7, fname: 'exchange(int)', _id: 1, new_data: data, all_data: data },
    ],
  };
}

const stage = new Stage((s) => {
  const dir = `${s.dir}/recorded`;
  mkdirSync(dir);
  for (let i = 0; i < 12; i++) {
    writeFileSync(`${dir}/pserver_output_stats_${i}.json`, JSON.stringify(packet(i, 5)));
  }
  return s.start('view', '--replay', dir, '--speed', '0');
});

describe('recorded packets', () => {
  for (const scheme of ['dark', 'light'] as const) {
    test(`give counts, and the page names missing data (${scheme})`, async () => {
      const v = await Visit.to(stage.browser, stage.address, { scheme });
      const { page } = v;
      await page.getByRole('banner').getByText('REPLAY ENDED').waitFor();
      await page.getByRole('heading', { name: /60 anomalies on 1 rank/ }).waitFor();
      await page.getByText('no executions, so lost time').waitFor();
      await page.getByRole('heading', { name: 'Anomalies by rank over time' }).waitFor();
      expect(await page.getByRole('button', { name: 'lost time', exact: true }).count()).toBe(0);
      await v.isAccessible();
      await v.go('functions');
      await page.getByRole('row', { name: /exchange/ }).waitFor();
      expect(await page.getByRole('columnheader', { name: 'Lost' }).count()).toBe(0);
      v.isWell();
      await v.go('findings');
      await page.getByText('counts of anomalies only').first().waitFor();
      expect(v.forget().join()).toContain('404'); // the browser logs the refusal
      await v.leave();
    });
  }
});
