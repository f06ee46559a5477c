// Hands a trace over to the viewer of Perfetto, which runs in a window of its own:
// the window is opened, asked PING until it answers PONG, and then given the trace.
// Nothing leaves the browsers of this reader: the viewer works on what it is given.

/** Where the viewer is. */
export const viewer = 'https://ui.perfetto.dev';

/** How far the hand-over is. */
export type Progress =
  | { at: 'idle' }
  /** The window is open; the trace, or an answer of the window, is awaited. */
  | { at: 'waiting' }
  /** The browser did not let the page open a window. */
  | { at: 'blocked' }
  /** The viewer does not answer. If it does later, it is given the trace all the same. */
  | { at: 'unreachable' }
  /** The reader closed the window before it had the trace. */
  | { at: 'closed' }
  /** The trace could not be had. */
  | { at: 'failed'; problem: unknown }
  | { at: 'done' };

/** What the hand-over needs of a browser; tests give their own. */
export interface Surroundings {
  open: (url: string) => Peer | null;
  /** Calls back with messages to the page until the returned function is called. */
  listen: (heard: (event: Heard) => void) => () => void;
}

/** A window of another site. */
export interface Peer {
  readonly closed: boolean;
  postMessage: (message: unknown, origin: string) => void;
}

export interface Heard {
  data: unknown;
  origin: string;
  source: unknown;
}

/** A trace that is ready. */
export interface Trace {
  buffer: ArrayBuffer;
  title: string;
  fileName: string;
}

export const pingEvery = 200; // milliseconds
export const patience = 8000; // until the viewer counts as out of reach
export const giveUp = 90_000; // until it is not asked any more

/** The surroundings that a browser gives. */
export const browser: Surroundings = {
  open: (url) => window.open(url),
  listen: (heard) => {
    window.addEventListener('message', heard);
    return () => window.removeEventListener('message', heard);
  },
};

/** Handover gives one trace to one window. */
export class Handover {
  private now: Progress = { at: 'idle' };
  private readonly changed: (now: Progress) => void;
  private readonly around: Surroundings;
  private peer: Peer | null = null;
  private trace: Trace | undefined;
  private answered = false;
  private timer: ReturnType<typeof setInterval> | undefined;
  private deaf: (() => void) | undefined;
  private waited = 0;

  constructor(changed: (now: Progress) => void, around: Surroundings = browser) {
    this.changed = changed;
    this.around = around;
  }

  /** Opens the window, which must happen while a click is handled, and gives it the trace when both are ready. */
  start(get: () => Promise<Trace>): void {
    this.stop();
    this.peer = this.around.open(viewer);
    if (!this.peer) {
      this.become({ at: 'blocked' });
      return;
    }
    this.become({ at: 'waiting' });
    this.deaf = this.around.listen((event) => this.hear(event));
    this.timer = setInterval(() => this.ping(), pingEvery);
    const peer = this.peer;
    get().then(
      (trace) => {
        if (this.peer !== peer) return; // another one has begun, or this one was given up
        this.trace = trace;
        this.give();
      },
      (problem: unknown) => {
        if (this.peer !== peer) return;
        this.stop();
        this.become({ at: 'failed', problem });
      },
    );
  }

  /** Ends it; the window stays. Nothing is called back any more. */
  stop(): void {
    clearInterval(this.timer);
    this.deaf?.();
    this.deaf = undefined;
    this.peer = null;
    this.trace = undefined;
    this.answered = false;
    this.waited = 0;
  }

  private hear(event: Heard): void {
    if (event.source !== this.peer || event.origin !== viewer || event.data !== 'PONG') return;
    this.answered = true;
    this.give();
  }

  private ping(): void {
    const { peer } = this;
    if (!peer) return;
    if (peer.closed) {
      this.stop();
      this.become({ at: 'closed' });
      return;
    }
    this.waited += pingEvery;
    if (!this.answered) peer.postMessage('PING', viewer);
    if (this.waited >= patience && this.now.at === 'waiting' && !this.answered) {
      this.become({ at: 'unreachable' });
    }
    if (this.waited >= giveUp) this.stop();
  }

  private give(): void {
    const { peer, trace } = this;
    if (!peer || !trace || !this.answered) return;
    peer.postMessage({ perfetto: { ...trace } }, viewer);
    this.stop();
    this.become({ at: 'done' });
  }

  private become(next: Progress): void {
    this.now = next;
    this.changed(next);
  }
}
