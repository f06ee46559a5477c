// The server-sent events of a run. The stream reconnects by itself and reports the age of its data. It does not depend on React.

import { runPath } from './client.ts';
import type { Overview, Status } from './types.gen.ts';

/** Data received from the stream so far. */
export interface Received {
  /** connecting: not connected yet; open; cut: lost and reconnecting; none: the run has no stream. */
  link: 'connecting' | 'open' | 'cut' | 'none';
  /** When the connection opened or the last event arrived, in milliseconds of Date.now; 0 before. */
  at: number;
  status: Status | undefined;
  overview: Overview | undefined;
  /** When the overview arrived; 0 if it has not. */
  overviewAt: number;
  /** The server's error; the next tick clears it. */
  problem: string;
}

/** Opens the stream; tests replace it. */
export type Open = (path: string) => EventSource;

const silence = 12_000; // milliseconds without an event before the connection counts as dead; ticks come every second
const slowest = 15_000; // milliseconds between attempts

/** Stream subscribes to the events of a run until closed. */
export class Stream {
  private received: Received = {
    link: 'connecting',
    at: 0,
    status: undefined,
    overview: undefined,
    overviewAt: 0,
    problem: '',
  };
  private readonly path: string;
  private readonly open: Open;
  private readonly changed: (now: Received) => void;
  private source: EventSource | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private attempts = 0;

  constructor(
    run: string,
    changed: (now: Received) => void,
    open: Open = (path) => new EventSource(path),
  ) {
    this.path = runPath(run, 'stream', { ranks: false });
    this.changed = changed;
    this.open = open;
    this.connect();
  }

  /** Closes the stream; no callbacks follow. */
  close(): void {
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    this.source?.close();
    this.source = undefined;
  }

  private connect(): void {
    clearTimeout(this.retry);
    this.source?.close();
    const source = this.open(this.path);
    this.source = source;
    source.addEventListener('open', () => this.change({ link: 'open', at: Date.now() }));
    source.addEventListener('tick', (e) => this.take('status', e));
    source.addEventListener('overview', (e) => this.take('overview', e));
    source.addEventListener('problem', (e) => this.take('problem', e));
    source.addEventListener('error', () => this.lost());
    this.expect();
  }

  private take(what: 'status' | 'overview' | 'problem', event: MessageEvent): void {
    let data: unknown;
    try {
      data = JSON.parse(String(event.data));
    } catch {
      return; // truncated; the next one is complete
    }
    this.attempts = 0;
    this.expect();
    const heard = { link: 'open', at: Date.now() } as const;
    if (what === 'problem') {
      const body = data as { error?: string; hint?: string };
      const text = [body.error ?? 'the server reported an error', body.hint ?? '']
        .filter((t) => t !== '')
        .join('; ');
      this.change({ ...heard, problem: text });
    } else if (what === 'status') {
      this.change({ ...heard, status: data as Status, problem: '' });
    } else {
      this.change({ ...heard, overview: data as Overview, overviewAt: heard.at });
    }
  }

  /** Reconnects after a delay; the server then sends everything new. */
  private lost(): void {
    const never = this.received.at === 0;
    if (this.source?.readyState === 2 /* closed: the browser gives up */) {
      this.source.close();
      const wait = Math.min(slowest, 1000 * 2 ** this.attempts++);
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.connect(), wait);
      // A server that responds without a stream has none for this run.
      this.change({ link: never ? 'none' : 'cut' });
    } else {
      this.change({ link: never ? 'connecting' : 'cut' });
    }
  }

  private expect(): void {
    clearTimeout(this.watch);
    this.watch = setTimeout(() => {
      if (this.received.at > 0) this.change({ link: 'cut' });
      this.connect();
    }, silence);
  }

  private change(part: Partial<Received>): void {
    this.received = { ...this.received, ...part };
    this.changed(this.received);
  }
}
