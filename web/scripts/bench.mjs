// What the page costs, in headless Chromium: how soon it shows its verdict, how much of a
// core it takes while a run of 1000 ranks goes on, and whether its memory grows meanwhile.
// Also how many frames per second the timeline of all ranks of the run SCALE shows while somebody zooms. make bench-ui runs it.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

const binary = process.env.CHIMBUKO ?? '../bin/chimbuko';
const ranks = Number(process.env.RANKS ?? 1000);
const loads = Number(process.env.LOADS ?? 9);
const seconds = Number(process.env.SECONDS ?? 20);
const memorySeconds = Number(process.env.MEMORY_SECONDS ?? 240);
const dir = mkdtempSync(join(tmpdir(), 'chimbuko-bench-'));
const children = [];

/** Starts chimbuko and returns the address of its page. */
function serve(...args) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return new Promise((resolve, reject) => {
    let [text, known] = ['', false];
    const look = (more) => {
      text += more;
      if (known) return;
      const found = /(https?:\/\/\S+\/\?token=\S+)|chimbuko view (\S+)\n/.exec(text);
      known = found !== null;
      if (known)
        resolve(found[1] ?? execFileSync(binary, ['view', found[2]], { encoding: 'utf8' }).trim());
    };
    child.stdout.setEncoding('utf8').on('data', look);
    child.stderr.setEncoding('utf8').on('data', look);
    child.once('exit', () => reject(new Error(`it ended:\n${text}`)));
  });
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});

/** How long a first visit takes until the verdict is there, in milliseconds. */
async function paint(url) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const start = performance.now();
  await page.goto(url, { waitUntil: 'commit' });
  await page.getByRole('main').getByRole('heading', { level: 1 }).waitFor();
  const took = performance.now() - start;
  await context.close();
  return took;
}

/** Processor time that the browser has taken for the page so far, in seconds. */
async function cpu(session) {
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  return processInfo
    .filter((p) => p.type === 'renderer' || p.type === 'GPU')
    .reduce((sum, p) => sum + p.cpuTime, 0);
}

/** The memory that scripts of the page hold when all that can be given back was, in bytes. */
async function heap(devtools) {
  await devtools.send('HeapProfiler.collectGarbage');
  return (await devtools.send('Runtime.getHeapUsage')).usedSize;
}

/** How much the page is made of: what is never removed would add up. */
async function parts(devtools) {
  const { nodes, jsEventListeners } = await devtools.send('Memory.getDOMCounters');
  return `${nodes} nodes and ${jsEventListeners} listeners`;
}

/** Looks at all views once, as somebody does who watches a run. */
async function round(page) {
  for (const view of ['issues', 'functions', 'functions?mode=flame', 'pipeline', 'overview']) {
    await page.evaluate((v) => (location.hash = `#/${v}`), view);
    await page.waitForTimeout(3000);
  }
}

/** Zooms the timeline in and out in each frame; returns its ranks, and the milliseconds between frames. */
async function zoomTimeline(url) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(url);
  await page.getByRole('main').getByRole('heading', { level: 1 }).waitFor();
  await page.evaluate(() => (location.hash = '#/timeline'));
  const box = page.getByRole('application', { name: /Timeline of/ });
  await box.waitFor({ timeout: 120_000 });
  await page.waitForTimeout(2000);
  const name = await box.getAttribute('aria-label');
  const frames = await box.evaluate(async (element) => {
    const place = element.getBoundingClientRect();
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const times = [];
    let last = await next();
    for (let i = 0; i < 300; i++) {
      const init = {
        deltaY: i % 120 < 60 ? -20 : 20,
        clientX: place.left + place.width * (0.3 + 0.001 * (i % 300)),
        clientY: place.top + place.height / 2,
        cancelable: true,
      };
      element.dispatchEvent(new WheelEvent('wheel', init));
      const now = await next();
      times.push(now - last);
      last = now;
    }
    return times;
  });
  await page.close();
  return { ranks: /Timeline of (\d+)/.exec(name)?.[1], frames };
}

try {
  if (process.env.SCALE) {
    const { ranks: n, frames } = await zoomTimeline(await serve('view', process.env.SCALE));
    const sorted = frames.toSorted((a, b) => a - b);
    const slow = sorted[Math.floor(0.95 * sorted.length)];
    const rate = (1000 * frames.length) / frames.reduce((a, b) => a + b, 0);
    console.log(
      `timeline, ${n} ranks    ${rate.toFixed(0)} frames per second while zooming, ${frames.length} frames, median ${median(frames).toFixed(1)} ms, 95 % within ${slow.toFixed(1)} ms; target 60`,
    );
  }
  execFileSync(binary, ['simulate', '--scenario', 'demo', '--out', join(dir, 'traces')], {
    stdio: 'ignore',
  });
  execFileSync(binary, ['analyze', join(dir, 'traces'), '--out', join(dir, 'run')], {
    stdio: 'ignore',
  });
  const finished = await serve('view', join(dir, 'run'));
  await paint(finished); // the first start of the browser is not the page's
  const times = [];
  for (let i = 0; i < loads; i++) times.push(await paint(finished));
  console.log(
    `first meaningful paint  ${median(times).toFixed(0)} ms, median of ${loads} (${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)}); target below 1500 ms`,
  );

  const live = await serve(
    'demo',
    '--ranks',
    String(ranks),
    '--duration',
    `${seconds + memorySeconds + 180}s`,
    '--stay',
  );
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(live);
  await page.getByRole('banner').getByText('LIVE').waitFor({ timeout: 120_000 });
  const session = await browser.newBrowserCDPSession();
  await page.waitForTimeout(5000); // until charts are loaded
  const [before, start] = [await cpu(session), performance.now()];
  await page.waitForTimeout(seconds * 1000);
  const [after, end] = [await cpu(session), performance.now()];
  const share = (100 * (after - before)) / ((end - start) / 1000);
  const state = await page.getByRole('banner').innerText();
  console.log(
    `live page, ${ranks} ranks    ${share.toFixed(1)} % of a core over ${seconds} s (${state.replaceAll('\n', ' ').slice(0, 60)}); target below 30 %`,
  );
  const devtools = await page.context().newCDPSession(page);
  await round(page); // loads what views need
  const [least, begun, made] = [await heap(devtools), performance.now(), await parts(devtools)];
  const heaps = [];
  while (performance.now() - begun < memorySeconds * 1000) {
    await round(page);
    heaps.push(await heap(devtools));
  }
  // What a view holds for the first time counts in the first half; what is never given
  // back makes the second half larger.
  const half = (list) => median(list) ?? least;
  const early = half(heaps.slice(0, Math.ceil(heaps.length / 2)));
  const late = half(heaps.slice(Math.ceil(heaps.length / 2)));
  const [last, mb] = [await heap(devtools), (n) => (n / 1e6).toFixed(1)];
  const took = ((performance.now() - begun) / 1000).toFixed(0);
  console.log(
    `memory of the page      ${mb(least)} MB, ${mb(last)} MB after ${heaps.length} rounds through all views in ${took} s of the run (at most ${mb(Math.max(least, ...heaps))} MB; medians of the halves ${mb(early)} and ${mb(late)} MB), ${made}, then ${await parts(devtools)}; target: it does not grow by more than 5 MB`,
  );
  if (process.env.SHOT) await page.screenshot({ path: process.env.SHOT });
} finally {
  await browser.close();
  for (const child of children) child.kill('SIGINT');
  rmSync(dir, { recursive: true, force: true });
}
