import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Label } from '../api/index.ts';
import { comparables, comparison, flamePair, histogramPair } from './fixtures/compare.ts';
import { culpritEvidence, evidence } from './fixtures/evidence.ts';
import { flame, functionDetail, functionTable } from './fixtures/functions.ts';
import { findingList, plot } from './fixtures/findings.ts';
import { heatmap, overview, status } from './fixtures/run.ts';

// A server of made-up data to view the page without a run: npm run mock. The run is live: anomalies grow, and the newest column of the strip changes.

const ranks = Number(process.env.RANKS ?? 8);
const list = findingList(ranks);
let ticks = 0;

function now() {
  const o = overview(ranks);
  o.figures.anomalies += ticks * 7;
  o.length_s += ticks;
  o.strip.to_s = o.length_s;
  return o;
}

function send(res: ServerResponse, body: unknown, code = 200): void {
  res.writeHead(code, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(body));
}

function stream(res: ServerResponse): void {
  res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  const event = (name: string, data: unknown) =>
    res.write(`id: ${ticks}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  const tick = () => {
    ticks++;
    const s = { ...status(ranks), ranks: [] };
    s.totals.anomalies += ticks * 7;
    event('tick', s);
    if (ticks % 2 === 0) event('overview', now());
  };
  event('overview', now());
  const timer = setInterval(tick, 1000);
  res.on('close', () => clearInterval(timer));
}

/** Handles a request below api/v1; returns false for unknown paths. */
export function answer(req: IncomingMessage, res: ServerResponse): boolean {
  const url = new URL(req.url ?? '', 'http://localhost');
  const path = url.pathname.replace(/^\/api\/v1\//, '').replace(/^runs\/heat2d\//, '');
  const cols = Number(url.searchParams.get('columns') ?? 120);
  if (path === 'runs') send(res, { rows: [{ name: 'heat2d' }], watched: 'heat2d' });
  else if (path === 'comparable') send(res, comparables());
  else if (path === 'compare') send(res, comparison());
  else if (path === 'compare/flame') send(res, flamePair());
  else if (path === 'compare/histograms') send(res, histogramPair());
  else if (path === 'overview') send(res, now());
  else if (path === 'heatmap') send(res, heatmap(ranks, cols, now().length_s));
  else if (path === 'findings') send(res, list);
  else if (/^findings\/.*\/plot$/.test(path)) send(res, plot());
  else if (/^events\/3.*\/evidence$/.test(path)) send(res, culpritEvidence());
  else if (/^events\/.*\/evidence$/.test(path)) send(res, evidence());
  else if (path === 'functions') send(res, functionTable());
  else if (path.startsWith('functions/')) send(res, functionDetail());
  else if (path === 'flame') send(res, flame());
  else if (path === 'counters' || path === 'events') send(res, { rows: [] });
  else if (path === 'pipeline') send(res, status(ranks));
  else if (path === 'stream') stream(res);
  else if (path.startsWith('labels/') && req.method === 'PUT') label(path.slice(7), req, res);
  else return false;
  return true;
}

function label(key: string, req: IncomingMessage, res: ServerResponse): void {
  let text = '';
  req.on('data', (part) => (text += String(part)));
  req.on('end', () => {
    const l = { ...(JSON.parse(text) as Label), key, at: new Date(0).toISOString() };
    for (const i of list.rows) if (i.key === key) i.label = l;
    send(res, l);
  });
}
