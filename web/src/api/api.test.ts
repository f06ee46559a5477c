import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview, status } from '../test/fixtures/run.ts';
import { serve } from '../test/render.tsx';
import { getJSON, Problem, putJSON, runPath } from './client.ts';
import { Stream, type Received } from './stream.ts';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('a question', () => {
  test('goes to a relative address in which names are escaped', () => {
    expect(runPath('a/b', 'issues', { limit: 3, host: '', all: undefined })).toBe(
      'api/v1/runs/a%2Fb/issues?limit=3',
    );
    expect(runPath('r', '')).toBe('api/v1/runs/r');
  });

  test('that fails tells what the server said and what to do', async () => {
    serve({
      issues: {
        status: 400,
        body: { error: 'parameter limit: no number', hint: 'see docs/api.md' },
      },
    });
    const problem = await getJSON(runPath('r', 'issues')).catch((err: unknown) => err);
    expect(problem).toBeInstanceOf(Problem);
    expect(problem).toMatchObject({
      message: 'parameter limit: no number',
      hint: 'see docs/api.md',
      status: 400,
    });
  });

  test('that a proxy answers with a page is a problem, too', async () => {
    vi.stubGlobal('fetch', () =>
      Promise.resolve(new Response('<html>', { status: 502, statusText: 'Bad Gateway' })),
    );
    await expect(getJSON('x')).rejects.toMatchObject({
      message: 'the answer was 502 Bad Gateway',
      status: 502,
    });
  });

  test('that nobody answers says what to look at', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed to fetch')));
    await expect(getJSON('x')).rejects.toMatchObject({
      status: 0,
      message: 'the server does not answer',
    });
  });

  test('that changes something is JSON', async () => {
    const requests = serve({
      'labels/k': { body: { key: 'k', state: 'muted', note: '', at: '' } },
    });
    await putJSON(runPath('r', 'labels/k'), { state: 'muted', note: 'x' });
    expect(requests).toEqual([
      { method: 'PUT', path: 'api/v1/runs/r/labels/k', body: { state: 'muted', note: 'x' } },
    ]);
  });
});

/** A source of events that a test drives. */
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

  test('asks for ticks without ranks, which may be many', () => {
    expect(newest().path).toBe('api/v1/runs/r/stream?ranks=false');
  });

  test('passes on what comes', () => {
    newest().send('overview', overview(8));
    newest().send('tick', status(8));
    expect(now).toMatchObject({ link: 'open', problem: '' });
    expect(now?.overview?.run).toBe('heat2d');
    expect(now?.status?.totals.ranks).toBe(8);
  });

  test('survives an event that was cut in the middle', () => {
    newest().send('tick', status(8));
    newest().send('tick', '{"run":');
    expect(now?.status?.totals.ranks).toBe(8);
  });

  test('tells what the server could not', () => {
    newest().send('tick', status(8));
    newest().send('problem', { error: 'the disk is full', hint: 'make room' });
    expect(now?.problem).toBe('the disk is full; make room');
    newest().send('tick', status(8));
    expect(now?.problem).toBe('');
  });

  test('that is cut says so, keeps what it has and comes back', () => {
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

  test('tries less and less often', () => {
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

  test('that says nothing for long is opened anew: the connection is dead', () => {
    newest().send('tick', status(8));
    vi.advanceTimersByTime(12_000);
    expect(now?.link).toBe('cut');
    expect(Source.all).toHaveLength(2);
  });

  test('that is refused is none, not cut', () => {
    newest().fail(true);
    expect(now?.link).toBe('none');
  });
});
