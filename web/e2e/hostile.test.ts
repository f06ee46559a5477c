// Names from traces are always rendered as text.
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Visit } from './browser.ts';
import { Stage } from './stage.ts';

const evil = '<script>alert(1)</script><img src=x onerror=alert(2)>';
const scenario = `
name = "hostile"
text = "names that try to be markup"
steps = 20
iterations = 20

[[program]]
name = "<img src=x onerror=alert(2)>"
ranks = 4
hosts = ["<b>left", "right'\\"&amp;"]
body = ["work"]

[program.functions]
work = { name = "work ${evil}", time = { normal = [300, 20] }, calls = ["20 compute"] }
compute = { name = "compute ${evil}", time = { lognormal = [500, 0.05] } }

[[program.counter]]
name = "counter ${evil}"
seconds = 0.1
value = { normal = [1410, 6] }

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
  writeFileSync(`${s.dir}/hostile.toml`, scenario);
  s.analyze(`${s.dir}/hostile.toml`, 'run', '--name', evil);
  return s.start('view', `${s.dir}/run`, '--read-only');
});

describe('names with markup', () => {
  test('are shown as text in all views', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    const shown = v.page.getByText('<script>alert(1)</script>').first();
    await shown.waitFor();
    for (const route of [
      'findings',
      'functions',
      'functions?mode=flame',
      'functions?mode=counters',
      'pipeline',
    ]) {
      await v.go(route);
      await shown.waitFor();
    }
    await v.go('findings');
    await v.page
      .getByRole('row', { name: /compute/ })
      .first()
      .click();
    await v.page
      .getByRole('main')
      .getByRole('link', { name: /evidence|3:\d+:\d+/i })
      .first()
      .click();
    await v.page.waitForURL(/#\/e\//);
    await shown.waitFor();
    expect(await v.page.locator('main img[src="x"], main script, main b').count()).toBe(0);
    v.isWell();
    await v.leave();
  });

  test('cannot be labeled on a read-only page', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    await v.go('findings');
    await v.page
      .getByRole('row', { name: /compute/ })
      .first()
      .click();
    const mute = v.page.getByRole('button', { name: 'Mute…' });
    await mute.waitFor();
    expect(await mute.isDisabled()).toBe(true);
    expect(await mute.getAttribute('title')).toContain('--read-only');
    await v.leave();
  });
});
