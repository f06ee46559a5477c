// Takes the screenshots of docs/img: node scripts/pictures.mjs [NAME…], with the names of some
// pictures or none for all. make pictures runs it. Errors of the page are printed.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const binary = process.env.CHIMBUKO ?? '../bin/chimbuko';
const out = join(import.meta.dirname, '../../docs/img');
const names = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), 'chimbuko-pictures-'));
const children = [];

/** Runs chimbuko and returns its output. */
function run(...args) {
  return execFileSync(binary, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

/** Simulates a scenario of this text and analyzes it. */
function analyze(name, toml) {
  writeFileSync(join(dir, `${name}.toml`), toml);
  run('simulate', '--scenario', join(dir, `${name}.toml`), '--out', join(dir, `${name}-traces`));
  run('analyze', join(dir, `${name}-traces`), '--out', join(dir, name), '--name', name);
  return join(dir, name);
}

/** Starts chimbuko view and returns the address of the page. */
function view(...args) {
  const child = spawn(binary, ['view', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (more) => {
      text += more;
      const found = /https?:\/\/\S+/.exec(text);
      if (found) resolve(found[0]);
    });
    child.once('exit', () => reject(new Error(`chimbuko view ended:\n${text}`)));
  });
}

const withoutTrouble = (toml) => toml.replace(/\n\[\[trouble\]\][\s\S]*$/, '\n');

/** Opens the worst issue from the overview. */
async function openWorst(page) {
  await page.locator('main a[href*="sel="]').first().click();
  await page.getByRole('link', { name: /^Explain/ }).waitFor();
}

const hosts =
  'SELECT hostname, count(*) AS anomalies, sum(lost_time) / 1e6 AS lost_s\nFROM anomalies GROUP BY hostname ORDER BY lost_s DESC';

/** The pictures: the address and what to do on the page. */
const pictures = {
  overview: ['demo', '', async () => {}],
  findings: ['demo', '', openWorst],
  explain: [
    'demo',
    '',
    async (page) => {
      await openWorst(page);
      await page.getByRole('link', { name: /^Explain/ }).click();
      await page.getByRole('dialog', { name: 'Explanation' }).waitFor();
    },
  ],
  evidence: [
    'demo',
    '',
    async (page) => {
      await openWorst(page);
      await page
        .getByRole('main')
        .getByRole('link', { name: /evidence|\d+:\d+:\d+/i })
        .first()
        .click();
      await page.waitForURL(/#\/e\//);
    },
  ],
  functions: [
    'demo',
    '#/functions',
    async (page) => {
      await page.getByRole('grid').getByRole('row').nth(1).click();
    },
  ],
  flame: ['demo', '#/functions?mode=flame', async () => {}],
  sql: [
    'demo',
    '',
    async (page) => {
      await page.keyboard.press('`');
      await page.getByRole('textbox', { name: 'SQL statement' }).fill(hosts);
      await page.keyboard.press('Control+Enter');
      await page.getByRole('grid', { name: 'Query result' }).waitFor();
    },
  ],
  compare: ['demo', '#/compare', async () => {}],
  trend: ['nights', '#/compare?mode=trend', async () => {}],
  report: ['report', '', async () => {}, { width: 1100, height: 1200 }],
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
try {
  const demo = run('simulate', '--scenario', 'demo', '--show');
  const [bad, good] = [analyze('demo', demo), analyze('good', withoutTrouble(demo))];
  const program = withoutTrouble(run('simulate', '--scenario', 'burst', '--show')).replace(
    /^steps = .*$/m,
    'steps = 10',
  );
  const slow = program.replace(/^stream = .*$/m, 'stream = { time = { lognormal = [590, 0.07] } }');
  const nights = [1, 2, 3, 4, 5, 6].map((n) =>
    analyze(`nightly-${String(n)}`, n >= 4 ? slow : program),
  );
  run('report', bad, '-o', join(dir, 'report.html'));
  const addresses = {
    demo: await view(bad, '--compare', good),
    nights: await view(nights[5], ...nights.slice(0, 5).flatMap((n) => ['--compare', n])),
    report: pathToFileURL(join(dir, 'report.html')).href,
  };
  for (const [name, [address, route, prepare, size]] of Object.entries(pictures)) {
    if (names.length > 0 && !names.includes(name)) continue;
    const context = await browser.newContext({
      colorScheme: 'dark',
      viewport: size ?? { width: 1440, height: 900 },
    });
    const page = await context.newPage();
    page.on('pageerror', (e) => console.log(name, e.message));
    await page.goto(addresses[address]);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    if (route !== '') await page.evaluate((r) => (location.hash = r), route);
    await prepare(page);
    await page.waitForTimeout(2000); // charts are drawn
    await page.screenshot({ path: join(out, `${name}.png`) });
    console.log(`${name}.png`);
    await context.close();
  }
} finally {
  await browser.close();
  for (const child of children) child.kill();
  rmSync(dir, { recursive: true });
}
