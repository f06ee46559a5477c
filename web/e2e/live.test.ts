// A live run: services, an analyzer and a simulated program.
import { writeFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { Visit } from './browser.ts';
import { Stage } from './stage.ts';

// A program of ten seconds whose rank 3 is slow in the third.
const scenario = `
name = "small"
text = "a small program for tests"
steps = 40
iterations = 20

[[program]]
name = "small"
ranks = 4
hosts = ["left", "right"]
body = ["work"]

[program.functions]
work = { time = { normal = [300, 20] }, calls = ["20 compute", "MPI_Allreduce()"] }
compute = { time = { lognormal = [500, 0.05] } }
"MPI_Allreduce()" = { kind = "collective", time = { normal = [30, 3] } }

[[trouble]]
name = "hanging"
kind = "burst"
ranks = [3]
functions = ["compute"]
from = 2
count = 5
value = { uniform = [50_000, 90_000] }
`;

const stage = new Stage((s) => {
  writeFileSync(`${s.dir}/small.toml`, scenario);
  return undefined;
});

describe('a live run', () => {
  let attempts = 0; // each in a directory of its own

  afterEach(() => stage.stop());

  test('is shown from start to end although the server is killed', async () => {
    attempts++;
    const run = `${stage.dir}/run-${attempts}`;
    const traces = `${stage.dir}/traces-${attempts}`;
    let serve = stage.start('serve', '--out', run, '--stay');
    const v = await Visit.to(stage.browser, await serve.address());
    const { page } = v;
    // Without data the page shows instructions.
    await page
      .getByText(/chimbuko ad --run-dir/)
      .first()
      .waitFor();
    v.isWell();

    stage.start('ad', '--run-dir', run, `${traces}/*.bp`);
    stage.start('simulate', '--scenario', `${stage.dir}/small.toml`, '--live', '--out', traces);
    await page.getByRole('banner').getByText('LIVE').waitFor();
    const verdict = page.getByRole('main').getByRole('heading', { level: 1 });
    await verdict.filter({ hasText: /compute on right since/ }).waitFor();
    v.isWell();

    // All other views show the data so far.
    await v.go('findings');
    await page
      .getByRole('row', { name: /compute/ })
      .first()
      .click();
    await page
      .getByRole('main')
      .getByRole('link', { name: /^3:\d+:\d+/ })
      .first()
      .click();
    await page.getByRole('heading', { name: /compute .* on rank 3/ }).waitFor();
    await v.go('functions');
    await page
      .getByRole('row', { name: /compute/ })
      .first()
      .waitFor();
    await v.go('pipeline');
    await page
      .getByRole('row', { name: /reading|waiting|review|done/ })
      .first()
      .waitFor();
    v.isWell();
    await v.go('overview');
    await verdict.filter({ hasText: /compute on right since/ }).waitFor();

    await serve.stop('SIGKILL');
    await page.getByText(/reconnecting/i).waitFor();
    expect(await verdict.textContent()).toMatch(/compute on right since/); // what was there stays
    v.forget(); // that the server was away
    serve = stage.start('serve', '--out', run, '--stay');
    await serve.address();
    await page.getByText(/reconnecting/i).waitFor({ state: 'hidden' });
    await verdict.filter({ hasText: /compute on right since/ }).waitFor();

    await page.getByRole('banner').getByText('ENDED').waitFor();
    // It may be folded beside others.
    await page
      .getByText(/flags? (?:was|were) (?:withdrawn|confirmed) at the end/)
      .waitFor({ state: 'attached' });
    await verdict.filter({ hasText: /compute on right since/ }).waitFor();
    await v.leave();

    // A late visitor sees the same at once.
    const late = await Visit.to(stage.browser, await serve.address());
    await late.page.getByRole('heading', { name: /compute on right since/ }).waitFor();
    late.isWell();
    await late.leave();
  }, 180_000);
});
