// Opens a trace in the Perfetto viewer in another window: send PING until it replies PONG, then post the trace. The viewer processes the trace locally in the browser.

/** URL of the viewer. */
export const viewer = 'https://ui.perfetto.dev';

/** State of the handover. */
export type Progress =
  | { at: 'idle' }
  /** Waiting for the trace or for the window. */
  | { at: 'waiting' }
  /** The browser blocked the window. */
  | { at: 'blocked' }
  /** The viewer does not respond; a late reply still gets the trace. */
  | { at: 'unreachable' }
  /** The window was closed before the trace was sent. */
  | { at: 'closed' }
  /** Loading the trace failed. */
  | { at: 'failed'; problem: unknown }
  | { at: 'done' };

/** The browser functions in use; tests replace them. */
export interface Surroundings {
  open: (url: string) => Peer | null;
  /** Calls back with messages to the page until the returned function is called. */
  listen: (heard: (event: Heard) => void) => () => void;
}

/** A window of another origin. */
export interface Peer {
  readonly closed: boolean;
  postMessage: (message: unknown, origin: string) => void;
}

export interface Heard {
  data: unknown;
  origin: string;
  source: unknown;
}

/** A loaded trace. */
export interface Trace {
  buffer: ArrayBuffer;
  title: string;
  fileName: string;
}

export const pingEvery = 200; // milliseconds
export const patience = 8000; // milliseconds until the viewer counts as unreachable
export const giveUp = 90_000; // milliseconds until pings stop

/** The functions of a real browser. */
export const browser: Surroundings = {
  open: (url) => window.open(url),
  listen: (heard) => {
    window.addEventListener('message', heard);
    return () => window.removeEventListener('message', heard);
  },
};

/** Handover sends one trace to one window. */
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

  /** Opens the window and sends the trace when both are ready. Call it from a click handler. */
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
        if (this.peer !== peer) return; // superseded or stopped
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

  /** Stops the handover; the window stays open and no callbacks follow. */
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
