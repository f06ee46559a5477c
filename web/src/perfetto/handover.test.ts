import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  giveUp,
  Handover,
  patience,
  pingEvery,
  viewer,
  type Heard,
  type Peer,
  type Progress,
  type Trace,
} from './handover.ts';

const trace: Trace = { buffer: new ArrayBuffer(8), title: 'pack on rank 3', fileName: 'a' };

/** A browser with one window, controlled by a test. */
class Around {
  sent: unknown[] = [];
  listeners = new Set<(event: Heard) => void>();
  blocked = false;
  peer: { closed: boolean; postMessage: Peer['postMessage'] } = {
    closed: false,
    postMessage: (message, origin) => {
      expect(origin).toBe(viewer);
      this.sent.push(message);
    },
  };
  open = (url: string): Peer | null => {
    expect(url).toBe(viewer);
    return this.blocked ? null : this.peer;
  };
  listen = (heard: (event: Heard) => void) => {
    this.listeners.add(heard);
    return () => this.listeners.delete(heard);
  };
  say(data: unknown, origin = viewer, source: unknown = this.peer): void {
    for (const l of [...this.listeners]) l({ data, origin, source });
  }
}

let around: Around;
let seen: Progress[];
let handover: Handover;

beforeEach(() => {
  vi.useFakeTimers();
  around = new Around();
  seen = [];
  handover = new Handover((p) => seen.push(p), around);
});

afterEach(() => {
  handover.stop();
  vi.useRealTimers();
});

const last = () => seen.at(-1)?.at;
const given = () => around.sent.filter((m) => m !== 'PING');

describe('the handover', () => {
  test('pings until the viewer replies, then sends the trace once', async () => {
    handover.start(() => Promise.resolve(trace));
    expect(last()).toBe('waiting');
    await vi.advanceTimersByTimeAsync(3 * pingEvery);
    expect(around.sent).toEqual(['PING', 'PING', 'PING']);
    around.say('PONG');
    expect(last()).toBe('done');
    expect(given()).toEqual([{ perfetto: trace }]);
    around.say('PONG');
    await vi.advanceTimersByTimeAsync(giveUp);
    expect(given()).toHaveLength(1);
    expect(around.listeners.size).toBe(0);
  });

  test('waits for the trace if the viewer is faster', async () => {
    let ready: (t: Trace) => void = () => undefined;
    handover.start(() => new Promise((resolve) => (ready = resolve)));
    around.say('PONG');
    expect(last()).toBe('waiting');
    await vi.advanceTimersByTimeAsync(2 * patience);
    expect(last()).toBe('waiting');
    ready(trace);
    await vi.advanceTimersByTimeAsync(0);
    expect(last()).toBe('done');
  });

  test('reports an unreachable viewer after some seconds', async () => {
    handover.start(() => Promise.resolve(trace));
    await vi.advanceTimersByTimeAsync(patience - pingEvery);
    expect(last()).toBe('waiting');
    await vi.advanceTimersByTimeAsync(pingEvery);
    expect(last()).toBe('unreachable');
  });

  test('sends the trace to a slow viewer', async () => {
    handover.start(() => Promise.resolve(trace));
    await vi.advanceTimersByTimeAsync(patience + 1000);
    around.say('PONG');
    expect(last()).toBe('done');
  });

  test('stops pinging eventually', async () => {
    handover.start(() => Promise.resolve(trace));
    await vi.advanceTimersByTimeAsync(giveUp + 1000);
    const pings = around.sent.length;
    await vi.advanceTimersByTimeAsync(giveUp);
    expect(around.sent).toHaveLength(pings);
    expect(last()).toBe('unreachable');
  });

  test('reports a blocked window and fetches no trace', () => {
    around.blocked = true;
    const get = vi.fn(() => Promise.resolve(trace));
    handover.start(get);
    expect(last()).toBe('blocked');
    expect(get).not.toHaveBeenCalled();
  });

  test('reports why the trace failed to load', async () => {
    handover.start(() => Promise.reject(new Error('the store is away')));
    await vi.advanceTimersByTimeAsync(0);
    expect(seen.at(-1)).toEqual({ at: 'failed', problem: new Error('the store is away') });
    around.say('PONG');
    expect(given()).toEqual([]);
  });

  test('notices that the window was closed', async () => {
    handover.start(() => Promise.resolve(trace));
    around.peer.closed = true;
    await vi.advanceTimersByTimeAsync(pingEvery);
    expect(last()).toBe('closed');
  });

  test('accepts messages only from its window and origin', async () => {
    handover.start(() => Promise.resolve(trace));
    await vi.advanceTimersByTimeAsync(0);
    around.say('PONG', 'https://example.org');
    around.say('PONG', viewer, {});
    around.say({ perfetto: 1 });
    expect(given()).toEqual([]);
    expect(last()).toBe('waiting');
  });

  test('can be tried again', async () => {
    handover.start(() => Promise.reject(new Error('no')));
    await vi.advanceTimersByTimeAsync(0);
    handover.start(() => Promise.resolve(trace));
    await vi.advanceTimersByTimeAsync(pingEvery);
    around.say('PONG');
    expect(seen.map((p) => p.at)).toEqual(['waiting', 'failed', 'waiting', 'done']);
  });

  test('reports nothing after stop', async () => {
    handover.start(() => Promise.resolve(trace));
    handover.stop();
    await vi.advanceTimersByTimeAsync(2 * patience);
    around.say('PONG');
    expect(seen.map((p) => p.at)).toEqual(['waiting']);
  });
});
