// Takes screenshots of every view of a run at three sizes in both themes, for people to look at:
// node scripts/looks.mjs DIRECTORY ADDRESS [VIEW…], with the address that chimbuko view prints. Errors of the page are printed,
// and views that are wider than the window.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const [out, address, ...only] = process.argv.slice(2);
if (address === undefined) {
  console.error('usage: node scripts/looks.mjs DIRECTORY ADDRESS [VIEW…]');
  process.exit(2);
}
mkdirSync(out, { recursive: true });

/** Opens the evidence of the first event that findings lists. */
async function firstEvent(page) {
  await page.locator('main a[href*="#/e/"]').first().click({ timeout: 5000 });
  await page.waitForURL(/#\/e\//);
}

/** The views: address and what to do there. */
const views = {
  overview: ['#/', async () => {}],
  findings: ['#/findings', async () => {}],
  finding: ['#/', (page) => page.locator('main a[href*="sel="]').first().click({ timeout: 5000 })],
  evidence: ['#/evidence', firstEvent],
  functions: ['#/functions', async () => {}],
  flame: ['#/functions?mode=flame', async () => {}],
  counters: ['#/functions?mode=counters', async () => {}],
  pipeline: ['#/pipeline', async () => {}],
  compare: ['#/compare', async () => {}],
  ranks: ['#/ranks', async () => {}],
  timeline: ['#/timeline', async () => {}],
  gpus: ['#/gpus', async () => {}],
  sql: ['#/', (page) => page.keyboard.press('`')],
  help: ['#/', (page) => page.keyboard.press('?')],
};

const sizes = [
  [1440, 900],
  [1024, 768],
  [400, 860],
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
try {
  for (const colorScheme of ['light', 'dark']) {
    for (const [width, height] of sizes) {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme });
      const page = await context.newPage();
      page.on('pageerror', (e) => console.error(`${page.url()}: ${e.message}`));
      await page.goto(address);
      await page.getByRole('heading', { level: 1 }).first().waitFor({ timeout: 60_000 });
      for (const [name, [hash, act]] of Object.entries(views)) {
        if (only.length > 0 && !only.includes(name)) continue;
        await page.goto(address.replace(/#.*$/, '') + hash);
        await page.getByRole('heading', { level: 1 }).first().waitFor({ timeout: 60_000 });
        await page.waitForLoadState('networkidle', { timeout: 5000 }).catch(() => undefined);
        await act(page).catch((e) => console.error(`${name}: ${e.message.split('\n')[0]}`));
        await page.waitForTimeout(2000); // what the action loads
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) console.error(`${name}, ${width} pixels: the page is ${wide} wide`);
        await page.screenshot({ path: join(out, `${name}-${width}-${colorScheme}.png`) });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
}
