import { keepPreviousData, QueryClient, useQuery as useTanStackQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { asProblem, getJSON, Problem, runPath, type Params } from './client.ts';
import { useLive } from './session.ts';

const retryDelay = 3000; // milliseconds between requests to a server that is unreachable or busy

/** The queries of the page, keyed by path. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      queryFn: ({ queryKey, signal }) => getJSON(queryKey[0] as string, signal),
      gcTime: 120_000,
      networkMode: 'always', // the server may be this machine
      refetchOnReconnect: false,
      refetchOnWindowFocus: false,
      retry: (_, err) => isTransient(err),
      retryDelay,
    },
  },
});

/** Reports whether the same request may succeed later. */
function isTransient(err: unknown): boolean {
  return err instanceof Problem && [0, 502, 503].includes(err.status);
}

/** Refetches all queries that are shown. */
export function refetchShown(): void {
  void queryClient.refetchQueries({ type: 'active' }, { cancelRefetch: false });
}

/** The state of a query. */
export interface Query<T> {
  /** The last good answer, also while a newer one is pending. */
  data: T | undefined;
  /** Why the last attempt failed; undefined again when one succeeds. */
  problem: Problem | undefined;
  /** Whether a request is pending. */
  loading: boolean;
  /** When data arrived, in milliseconds of Date.now; 0 before. */
  at: number;
  /** Whether data answers the previous path because the current one is still pending. */
  stale: boolean;
  refresh: () => void;
}

/** Options of useQuery. */
export interface QueryOptions {
  /** Milliseconds between requests while the run is live; 0 requests once. */
  every?: number;
  /** Keep the answer for the previous path until the new one arrives. */
  keep?: boolean;
}

/**
 * Fetches path and renders again when the answer changes. While a run is live and not
 * paused the request is repeated. A path of undefined fetches nothing.
 */
export function useQuery<T>(path: string | undefined, options: QueryOptions = {}): Query<T> {
  const { every = 0, keep = false } = options;
  const { going } = useLive();
  const { data, dataUpdatedAt, error, failureReason, isFetching, isPlaceholderData, refetch } =
    useTanStackQuery<T>(
      {
        queryKey: [path],
        enabled: path !== undefined,
        refetchInterval: going && every > 0 ? every : false,
        ...(keep && { placeholderData: keepPreviousData }),
      },
      queryClient,
    );
  const refresh = useCallback(() => {
    if (path !== undefined) void refetch();
  }, [path, refetch]);
  const failure = error ?? failureReason;
  return useMemo(
    () => ({
      data,
      problem: failure ? asProblem(failure) : undefined,
      loading: isFetching && !failureReason,
      at: dataUpdatedAt,
      stale: isPlaceholderData,
      refresh,
    }),
    [data, failure, isFetching, failureReason, dataUpdatedAt, isPlaceholderData, refresh],
  );
}

/** Fetches a path of the run that is shown. A path of undefined fetches nothing. */
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
