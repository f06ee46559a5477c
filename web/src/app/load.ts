// Parts of the page that are loaded when they are needed, or before that when there
// is time: a view that was never opened must work while the server is away.

const pause = 2000; // milliseconds between two attempts
const attempts = 15;

/** Loads a part, again and again while that fails: a server may be restarting. */
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

/** Loads parts one after another while nothing else is to be done. It returns how to give that up. */
export function whenIdle(parts: readonly (() => Promise<unknown>)[]): () => void {
  let gone = false;
  const next = (i: number) => {
    const part = parts[i];
    if (gone || !part) return;
    part()
      .catch(() => undefined) // it is tried again when it is needed
      .finally(() => schedule(i + 1));
  };
  const schedule = (i: number) => setTimeout(() => next(i), 300);
  const timer = setTimeout(() => next(0), 1500);
  return () => {
    gone = true;
    clearTimeout(timer);
  };
}
