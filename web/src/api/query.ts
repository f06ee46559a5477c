import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { cache, type Answer } from './cache.ts';
import { runPath, type Params } from './client.ts';
import { useLive } from './session.ts';

const again = 3000; // milliseconds after which a server that was away is asked again

/** An answer, and how to ask again. */
export interface Query<T> extends Answer<T> {
  /** What is shown is of another question: the answer to the new one is still awaited. */
  stale: boolean;
  refresh: () => void;
}

/** How useQuery asks. */
export interface QueryOptions {
  /** Milliseconds after which a live run is asked again; 0: once. */
  every?: number;
  /** Show the answer to the question before until there is a new one. */
  keep?: boolean;
}

/**
 * The answer to a question, drawn again when it changes. While a run is live and
 * not paused it is asked again from time to time; what was known stays visible
 * meanwhile. A server that is away, or has no time, is asked again by itself. A path of undefined asks nothing.
 */
export function useQuery<T>(path: string | undefined, options: QueryOptions = {}): Query<T> {
  const { every = 0, keep = false } = options;
  const { going } = useLive();
  const subscribe = useCallback(
    (changed: () => void) => (path === undefined ? () => undefined : cache.listen(path, changed)),
    [path],
  );
  const answer = useSyncExternalStore(subscribe, () => cache.peek(path ?? '')) as Answer<T>;
  const refresh = useCallback(() => {
    if (path !== undefined) void cache.refresh(path);
  }, [path]);
  useEffect(refresh, [refresh]);
  useEffect(() => {
    if (!going || every === 0 || path === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden) refresh();
    }, every);
    return () => clearInterval(timer);
  }, [going, every, path, refresh]);
  const passing = answer.problem !== undefined && [0, 502, 503].includes(answer.problem.status);
  useEffect(() => {
    if (!passing || answer.loading) return;
    const timer = setTimeout(refresh, again);
    return () => clearTimeout(timer);
  }, [passing, answer.loading, refresh]);
  const [before, setBefore] = useState<T | undefined>(undefined);
  if (keep && answer.data !== undefined && answer.data !== before) setBefore(answer.data);
  return useMemo(() => {
    const old = keep && answer.data === undefined && !answer.problem ? before : undefined;
    return { ...answer, data: answer.data ?? old, stale: old !== undefined, refresh };
  }, [answer, before, keep, refresh]);
}

/** The answer about the run that is shown. A path of undefined asks nothing. */
export function useRunQuery<T>(
  path: string | undefined,
  params: Params = {},
  options: QueryOptions = {},
): Query<T> {
  const { run } = useLive();
  return useQuery<T>(
    run === '' || path === undefined ? undefined : runPath(run, path, params),
    options,
  );
}
