// The stream of server-sent events of a run. It reconnects by itself, and tells
// how old what it has is; it knows nothing of React.

import { runPath } from './client.ts';
import type { Overview, Status } from './types.gen.ts';

/** What has come over the stream so far. */
export interface Received {
  /** connecting: nothing has come yet; open; cut: it was open, and is tried again; none: there is no stream of this run. */
  link: 'connecting' | 'open' | 'cut' | 'none';
  /** When the last event came, in milliseconds of Date.now; 0: none has. */
  at: number;
  status: Status | undefined;
  overview: Overview | undefined;
  /** When the overview came; 0: it has not. */
  overviewAt: number;
  /** What the server could not tell; empty again with the next tick. */
  problem: string;
}

/** How the stream is opened; tests give their own. */
export type Open = (path: string) => EventSource;

const silence = 12_000; // without any event, where there is one every second: the connection is dead
const slowest = 15_000; // between two attempts

/** Stream follows a run until it is closed. */
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

  /** Ends it; nothing is called back any more. */
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
      return; // cut in the middle; the next one is complete
    }
    this.attempts = 0;
    this.expect();
    const heard = { link: 'open', at: Date.now() } as const;
    if (what === 'problem') {
      const told = data as { error?: string; hint?: string };
      const text = [told.error ?? 'the server has a problem', told.hint ?? '']
        .filter((t) => t !== '')
        .join('; ');
      this.change({ ...heard, problem: text });
    } else if (what === 'status') {
      this.change({ ...heard, status: data as Status, problem: '' });
    } else {
      this.change({ ...heard, overview: data as Overview, overviewAt: heard.at });
    }
  }

  /** Tries again after the connection was lost; the server says all that is new then. */
  private lost(): void {
    const never = this.received.at === 0;
    if (this.source?.readyState === 2 /* closed: the browser gives up */) {
      this.source.close();
      const wait = Math.min(slowest, 1000 * 2 ** this.attempts++);
      clearTimeout(this.retry);
      this.retry = setTimeout(() => this.connect(), wait);
      // A server that answers, but not with a stream, has none of this run.
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
