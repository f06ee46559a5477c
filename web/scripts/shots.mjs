// Pictures of the views, to be looked at: node scripts/shots.mjs URL DIR [ROUTE…].
// Each route is taken dark and light, 1440 × 900 and 900 wide. What the console
// says is printed: a page that is well says nothing.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [url, dir, ...given] = process.argv.slice(2);
if (!url || !dir) {
  console.error('usage: node scripts/shots.mjs URL DIR [ROUTE…]');
  process.exit(2);
}
const routes = given.length > 0 ? given : ['overview', 'issues', 'functions', 'pipeline'];
const wait = Number(process.env.WAIT ?? 1500);
mkdirSync(dir, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const modes = [
  ['dark', 1440, 900],
  ['light', 1440, 900],
  ['dark', 900, 900],
];
try {
  for (const [scheme, width, height] of modes) {
    if (process.env.MODE && process.env.MODE !== `${scheme}-${width}`) continue;
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height } });
    const page = await context.newPage();
    page.on(
      'console',
      (m) => m.type() !== 'debug' && m.type() !== 'info' && console.log(scheme, m.type(), m.text()),
    );
    page.on('pageerror', (e) => console.log(scheme, 'error', e.message));
    await page.goto(url);
    for (const route of routes) {
      await page.evaluate((r) => (location.hash = `#/${r}`), route);
      await page.waitForTimeout(wait);
      const name = route.replace(/[^a-z0-9]+/gi, '_').slice(0, 60);
      const file = join(dir, `${process.env.PREFIX ?? ''}${name}-${scheme}-${width}.png`);
      await page.screenshot({ path: file });
      console.log(file);
    }
    await context.close();
  }
} finally {
  await browser.close();
}
