import { asProblem, getJSON, type Problem } from './client.ts';

/** What is known of a question. */
export interface Answer<T> {
  /** The last good answer, also while a newer one is awaited. */
  data: T | undefined;
  /** Why the last attempt failed; undefined again when one succeeds. */
  problem: Problem | undefined;
  /** Whether an answer is awaited now. */
  loading: boolean;
  /** When data came, in milliseconds of Date.now; 0 before. */
  at: number;
}

interface Entry {
  answer: Answer<unknown>;
  text: string; // of the data, to tell whether it changed
  listeners: Set<() => void>;
  abort: AbortController | undefined;
}

const nothing: Answer<unknown> = { data: undefined, problem: undefined, loading: false, at: 0 };

/**
 * Cache keeps the last answers by path: a view that is opened again is drawn at
 * once from what is known, and again when the new answer is there. A question is
 * given up when nobody listens any more.
 */
export class Cache {
  private readonly entries = new Map<string, Entry>();
  private readonly most: number;
  private readonly get: <T>(path: string, signal?: AbortSignal) => Promise<T>;

  constructor(get: <T>(path: string, signal?: AbortSignal) => Promise<T> = getJSON, most = 60) {
    this.get = get;
    this.most = most;
  }

  /** What is known; the same object until something changes. */
  peek(path: string): Answer<unknown> {
    return this.entries.get(path)?.answer ?? nothing;
  }

  /** Calls back when an answer changes. */
  listen(path: string, changed: () => void): () => void {
    const e = this.entry(path);
    e.listeners.add(changed);
    return () => {
      e.listeners.delete(changed);
      if (e.listeners.size > 0) return;
      e.abort?.abort();
      e.abort = undefined;
      e.answer = { ...e.answer, loading: false };
      this.evict();
    };
  }

  /** Asks, unless the same is being asked already. It never fails: the problem is part of the answer. */
  async refresh(path: string): Promise<void> {
    const e = this.entry(path);
    if (e.abort) return;
    const abort = new AbortController();
    e.abort = abort;
    this.change(e, { ...e.answer, loading: true });
    try {
      const data = await this.get(path, abort.signal);
      if (e.abort !== abort) return;
      e.abort = undefined;
      const text = JSON.stringify(data);
      const same = text === e.text && e.answer.data !== undefined;
      e.text = text;
      this.change(e, {
        data: same ? e.answer.data : data,
        problem: undefined,
        loading: false,
        at: Date.now(),
      });
    } catch (err) {
      if (e.abort !== abort) return; // given up
      e.abort = undefined;
      this.change(e, { ...e.answer, problem: asProblem(err), loading: false });
    }
  }

  /** Asks again everything that is listened to and whose path has this begin. */
  refreshAll(prefix = ''): void {
    for (const [path, e] of this.entries) {
      if (e.listeners.size > 0 && path.startsWith(prefix)) void this.refresh(path);
    }
  }

  /** Forgets everything; for tests. */
  clear(): void {
    for (const e of this.entries.values()) e.abort?.abort();
    this.entries.clear();
  }

  private change(e: Entry, answer: Answer<unknown>): void {
    e.answer = answer;
    for (const changed of [...e.listeners]) changed();
  }

  private entry(path: string): Entry {
    let e = this.entries.get(path);
    if (e) {
      this.entries.delete(path); // it moves to the end: the first is the one not used longest
    } else {
      e = { answer: nothing, text: '', listeners: new Set(), abort: undefined };
    }
    this.entries.set(path, e);
    return e;
  }

  private evict(): void {
    for (const [path, e] of this.entries) {
      if (this.entries.size <= this.most) return;
      if (e.listeners.size === 0) this.entries.delete(path);
    }
  }
}

/** The cache of the page. */
export const cache = new Cache();
