import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview, status } from '../test/fixtures/run.ts';
import { serve } from '../test/render.tsx';
import { getJSON, Problem, putJSON, runPath } from './client.ts';
import { Stream, type Received } from './stream.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('a request', () => {
  test('uses a relative URL with escaped names', () => {
    expect(runPath('a/b', 'findings', { limit: 3, host: '', all: undefined })).toBe(
      'api/v1/runs/a%2Fb/findings?limit=3',
    );
    expect(runPath('r', '')).toBe('api/v1/runs/r');
  });

  test('reports the error and hint of the server', async () => {
    serve({
      findings: {
        status: 400,
        body: { error: 'parameter limit: not a number', hint: 'see docs/api.md' },
      },
    });
    const problem = await getJSON(runPath('r', 'findings')).catch((err: unknown) => err);
    expect(problem).toBeInstanceOf(Problem);
    expect(problem).toMatchObject({
      message: 'parameter limit: not a number',
      hint: 'see docs/api.md',
      status: 400,
    });
  });

  test('reports an HTML error page of a proxy', async () => {
    vi.stubGlobal('fetch', () =>
      Promise.resolve(new Response('<html>', { status: 502, statusText: 'Bad Gateway' })),
    );
    await expect(getJSON('x')).rejects.toMatchObject({
      message: 'the server returned 502 Bad Gateway',
      status: 502,
    });
  });

  test('reports an unreachable server with a hint', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed to fetch')));
    await expect(getJSON('x')).rejects.toMatchObject({
      status: 0,
      message: 'cannot reach the server',
    });
  });

  test('sends changes as JSON', async () => {
    const requests = serve({
      'labels/k': { body: { key: 'k', state: 'muted', note: '', at: '' } },
    });
    await putJSON(runPath('r', 'labels/k'), { state: 'muted', note: 'x' });
    expect(requests).toEqual([
      { method: 'PUT', path: 'api/v1/runs/r/labels/k', body: { state: 'muted', note: 'x' } },
    ]);
  });
});

/** An event source controlled by a test. */
class Source extends EventTarget {
  static all: Source[] = [];
  readyState = 0;
  readonly path: string;

  constructor(path: string) {
    super();
    this.path = path;
    Source.all.push(this);
  }

  close(): void {
    this.readyState = 2;
  }

  send(name: string, data: unknown): void {
    this.readyState = 1;
    this.dispatchEvent(
      new MessageEvent(name, { data: typeof data === 'string' ? data : JSON.stringify(data) }),
    );
  }

  fail(closed: boolean): void {
    this.readyState = closed ? 2 : 0;
    this.dispatchEvent(new Event('error'));
  }
}

describe('the stream', () => {
  let now: Received | undefined;
  let stream: Stream | undefined;
  const newest = () => Source.all.at(-1) ?? new Source('');

  beforeEach(() => {
    vi.useFakeTimers();
    Source.all = [];
    now = undefined;
    stream = new Stream(
      'r',
      (r) => {
        now = r;
      },
      (path) => new Source(path) as unknown as EventSource,
    );
  });

  afterEach(() => stream?.close());

  test('requests ticks without ranks', () => {
    expect(newest().path).toBe('api/v1/runs/r/stream?ranks=false');
  });

  test('passes on events', () => {
    newest().send('overview', overview(8));
    newest().send('tick', status(8));
    expect(now).toMatchObject({ link: 'open', problem: '' });
    expect(now?.overview?.run).toBe('heat2d');
    expect(now?.status?.totals.ranks).toBe(8);
  });

  test('ignores a truncated event', () => {
    newest().send('tick', status(8));
    newest().send('tick', '{"run":');
    expect(now?.status?.totals.ranks).toBe(8);
  });

  test('reports errors of the server', () => {
    newest().send('tick', status(8));
    newest().send('problem', { error: 'the disk is full', hint: 'make room' });
    expect(now?.problem).toBe('the disk is full; make room');
    newest().send('tick', status(8));
    expect(now?.problem).toBe('');
  });

  test('keeps its data when cut and reconnects', () => {
    newest().send('overview', overview(8));
    newest().fail(true);
    expect(now).toMatchObject({ link: 'cut' });
    expect(now?.overview?.run).toBe('heat2d');
    vi.advanceTimersByTime(1000);
    expect(Source.all).toHaveLength(2);
    newest().send('overview', overview(8, { length_s: 3000 }));
    expect(now).toMatchObject({ link: 'open' });
    expect(now?.overview?.length_s).toBe(3000);
  });

  test('backs off', () => {
    newest().send('tick', status(8));
    const made = [1];
    for (const wait of [1000, 2000, 4000, 8000]) {
      newest().fail(true);
      vi.advanceTimersByTime(wait - 1);
      expect(Source.all.length).toBe(made.length);
      vi.advanceTimersByTime(1);
      made.push(1);
      expect(Source.all.length).toBe(made.length);
    }
  });

  test('reconnects after a long silence', () => {
    newest().send('tick', status(8));
    vi.advanceTimersByTime(12_000);
    expect(now?.link).toBe('cut');
    expect(Source.all).toHaveLength(2);
  });

  test('is cut if the server stops before its first event', () => {
    newest().send('open', {});
    newest().fail(true);
    expect(now?.link).toBe('cut');
  });

  test('reports none when refused', () => {
    newest().fail(true);
    expect(now?.link).toBe('none');
  });
});
