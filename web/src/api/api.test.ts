import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview, status } from '../test/fixtures/run.ts';
import { serve } from '../test/render.tsx';
import { Cache } from './cache.ts';
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

describe('the cache', () => {
  test('shows the old answer until the new one is there', async () => {
    let n = 0;
    const cache = new Cache(<T>() => Promise.resolve({ n: ++n } as T));
    const seen: unknown[] = [];
    const leave = cache.listen('a', () => seen.push({ ...cache.peek('a'), at: 0 }));
    await cache.refresh('a');
    await cache.refresh('a');
    leave();
    expect(seen).toEqual([
      { data: undefined, problem: undefined, loading: true, at: 0 },
      { data: { n: 1 }, problem: undefined, loading: false, at: 0 },
      { data: { n: 1 }, problem: undefined, loading: true, at: 0 },
      { data: { n: 2 }, problem: undefined, loading: false, at: 0 },
    ]);
  });

  test('keeps the same object when the answer did not change', async () => {
    const cache = new Cache(<T>() => Promise.resolve({ rows: [1, 2] } as T));
    await cache.refresh('a');
    const first = cache.peek('a').data;
    await cache.refresh('a');
    expect(cache.peek('a').data).toBe(first);
  });

  test('keeps what it has when a question fails', async () => {
    let fail = false;
    const cache = new Cache(<T>() =>
      fail ? Promise.reject(new Problem('no')) : Promise.resolve(1 as T),
    );
    await cache.refresh('a');
    fail = true;
    await cache.refresh('a');
    expect(cache.peek('a')).toMatchObject({ data: 1, loading: false });
    expect(cache.peek('a').problem?.message).toBe('no');
  });

  test('gives a question up when nobody listens any more', () => {
    let signal: AbortSignal | undefined;
    const cache = new Cache(<T>(_: string, s?: AbortSignal) => {
      signal = s;
      return new Promise<T>(() => undefined);
    });
    const leave = cache.listen('a', () => undefined);
    void cache.refresh('a');
    leave();
    expect(signal?.aborted).toBe(true);
    expect(cache.peek('a').loading).toBe(false);
  });

  test('forgets what was not used for longest', async () => {
    const cache = new Cache(<T>(path: string) => Promise.resolve(path as T), 2);
    for (const path of ['a', 'b', 'c']) {
      const leave = cache.listen(path, () => undefined);
      await cache.refresh(path);
      leave();
    }
    expect(cache.peek('a').data).toBeUndefined();
    expect(cache.peek('c').data).toBe('c');
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
