import type { Node, Status, Tally } from '../../api/index.ts';

// Figures derived from the pipeline status, without side effects.

/** Problems of an analyzer, worst first. */
export type Trouble = 'silent' | 'drops' | 'behind' | 'waiting' | '';

const behind = 10; // seconds; shorter delays are normal

/** Returns the problem of an analyzer; empty if none. */
export function troubleOf(n: Node): Trouble {
  if (n.state === 'silent') return 'silent';
  if (n.drops > 0) return 'drops';
  if (n.behind_seconds > behind && n.state === 'reading') return 'behind';
  if (n.outbox_messages > 100) return 'waiting';
  return '';
}

const order: Readonly<Record<Trouble, number>> = {
  silent: 4,
  drops: 3,
  behind: 2,
  waiting: 1,
  '': 0,
};

/** Severity of the problem for sorting; 0 if none. */
export function badness(n: Node): number {
  return order[troubleOf(n)];
}

/** Seconds between two timestamps; undefined if one is unknown. */
export function between(from: string | undefined, to: string | undefined): number | undefined {
  if (!from || !to) return undefined;
  const s = (Date.parse(to) - Date.parse(from)) / 1000;
  return Number.isFinite(s) && s > 0 ? s : undefined;
}

/** Time spent on steps since connecting, in percent of one core; over 100 with several workers. */
export function busy(n: Node, now: string): number | undefined {
  const all = between(n.connected, n.last_heard ?? now);
  if (all === undefined || !n.stages) return undefined;
  return (100 * n.stages.reduce((s, x) => s + x.seconds, 0)) / all;
}

/** CPU use of the process in percent of one core. */
export function cpu(n: Node, now: string): number | undefined {
  const all = between(n.connected, n.last_heard ?? now);
  return all === undefined || n.cpu_seconds === undefined ? undefined : (100 * n.cpu_seconds) / all;
}

/** Overhead on a host. */
export interface HostCost {
  host: string;
  analyzers: number;
  ranks: number;
  cpu: number | undefined; // percent of one core
  cpuSeconds: number;
  rss: number;
  eventsPerSecond: number;
}

/** Overhead by host, most memory first. */
export function costs(status: Status): HostCost[] {
  const hosts = new Map<string, HostCost>();
  for (const n of status.nodes ?? []) {
    const host = n.host ?? '';
    const c = hosts.get(host) ?? {
      host,
      analyzers: 0,
      ranks: 0,
      cpu: undefined,
      cpuSeconds: 0,
      rss: 0,
      eventsPerSecond: 0,
    };
    const used = cpu(n, status.run.now);
    c.analyzers++;
    c.ranks += n.ranks;
    c.cpu = used === undefined ? c.cpu : (c.cpu ?? 0) + used;
    c.cpuSeconds += n.cpu_seconds ?? 0;
    c.rss += n.rss_bytes ?? 0;
    c.eventsPerSecond += n.events_per_second;
    hosts.set(host, c);
  }
  return [...hosts.values()].sort((a, b) => b.rss - a.rss);
}

/** A tally summed over all analyzers. */
export interface TallySum extends Tally {
  analyzers: number;
}

const severities = ['data loss', 'warning', 'repaired', 'info'];

/** The tallies of all analyzers, most severe first. */
export function tallies(status: Status): TallySum[] {
  const sums = new Map<string, TallySum>();
  for (const n of status.nodes ?? []) {
    for (const t of n.tallies ?? []) {
      const sum = sums.get(t.name);
      if (sum) {
        sum.count += t.count;
        sum.analyzers++;
      } else {
        sums.set(t.name, { ...t, analyzers: 1 });
      }
    }
  }
  const rank = (t: TallySum) =>
    (severities.indexOf(t.severity) + severities.length + 1) % (severities.length + 1);
  return [...sums.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
}

/** Sums and extremes over all analyzers. */
export interface Sums {
  eventsPerSecond: number;
  behind: number; // seconds, maximum over analyzers that still read
  outboxMessages: number;
  outboxBytes: number;
  drops: number;
  p50: number | undefined; // median exchange time in seconds
  p99: number | undefined; // maximum over all shards or, if unknown, analyzers
  cpu: number | undefined; // percent of one core
  rss: number;
}

function most(values: readonly (number | undefined)[]): number | undefined {
  const positive = values.filter((v): v is number => v !== undefined && v > 0);
  return positive.length === 0 ? undefined : Math.max(...positive);
}

/** Sums the figures of all analyzers. */
export function sums(status: Status): Sums {
  const nodes = status.nodes ?? [];
  const add = (f: (n: Node) => number) => nodes.reduce((s, n) => s + f(n), 0);
  const used = nodes.map((n) => cpu(n, status.run.now)).filter((c) => c !== undefined);
  const shards = status.parameter_server ?? [];
  return {
    eventsPerSecond: add((n) => n.events_per_second),
    behind: Math.max(0, ...nodes.filter((n) => n.state !== 'done').map((n) => n.behind_seconds)),
    outboxMessages: add((n) => n.outbox_messages),
    outboxBytes: add((n) => n.outbox_bytes),
    drops: add((n) => n.drops),
    p50: most(shards.map((s) => s.latency?.p50_seconds)),
    p99:
      most(shards.map((s) => s.latency?.p99_seconds)) ??
      most(nodes.map((n) => n.exchange?.p99_seconds)),
    cpu: used.length === 0 ? undefined : used.reduce((a, b) => a + b, 0),
    rss: add((n) => n.rss_bytes ?? 0),
  };
}
