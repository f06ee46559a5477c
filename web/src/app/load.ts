// Lazily loaded parts of the page. Idle time preloads them, so that views open while the server is unreachable.

const pause = 2000; // milliseconds between attempts
const attempts = 15;

/** Loads a part and retries on failure, since the server may be restarting. */
export async function persist<T>(load: () => Promise<T>, wait = pause): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await load();
    } catch (err) {
      if (n >= attempts) throw err;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

/** Loads parts one after another in idle time. Returns a function that cancels. */
export function whenIdle(parts: readonly (() => Promise<unknown>)[]): () => void {
  let gone = false;
  const next = (i: number) => {
    const part = parts[i];
    if (gone || !part) return;
    part()
      .catch(() => undefined) // retried when needed
      .finally(() => schedule(i + 1));
  };
  const schedule = (i: number) => setTimeout(() => next(i), 300);
  const timer = setTimeout(() => next(0), 1500);
  return () => {
    gone = true;
    clearTimeout(timer);
  };
}
