import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import { refetchShown } from './query.ts';
import { asProblem, getJSON, runPath, type Problem } from './client.ts';
import { noSession, SessionContext, type Session } from './session.ts';
import { Stream, type Open, type Received } from './stream.ts';
import type { Overview } from './types.gen.ts';
import { normalizeOverview } from './normalize.ts';

interface Runs {
  rows: { name: string }[];
  watched: string;
}

const withoutStream = 10_000; // milliseconds between requests for the overview without a stream
const retryDelay = 3000; // milliseconds before retrying an unreachable server

/** Fetches path until it succeeds, again every `every` milliseconds if that is not 0, and whenever round changes. */
function useAnswer<T>(
  path: string | undefined,
  every = 0,
  round = 0,
): { data: T | undefined; at: number; problem: Problem | undefined } {
  const [state, set] = useState<{ path: string; data?: T; at?: number; problem?: Problem }>();
  useEffect(() => {
    if (path === undefined) return;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = () => {
      getJSON<T>(path, abort.signal).then(
        (data) => {
          set({ path, data, at: Date.now() });
          if (every > 0) timer = setTimeout(ask, every);
        },
        (err: unknown) => {
          if (abort.signal.aborted) return;
          set((now) => ({ ...(now?.path === path ? now : { path }), problem: asProblem(err) }));
          timer = setTimeout(ask, retryDelay);
        },
      );
    };
    ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, every, round]);
  const mine = state?.path === path ? state : undefined;
  return {
    data: mine?.data,
    at: mine?.at ?? 0,
    problem: mine?.data === undefined ? mine?.problem : undefined,
  };
}

/** Subscribes to the stream of a run. */
function useStream(run: string, open: Open | undefined): Received | undefined {
  const [state, set] = useState<{ run: string; received: Received }>();
  useEffect(() => {
    if (run === '') return;
    const stream = new Stream(run, (received) => set({ run, received }), open);
    return () => stream.close();
  }, [run, open]);
  return state?.run === run ? state.received : undefined;
}

/** The data shown when the page was paused. */
interface Frozen {
  overview: Overview | undefined;
  status: Received['status'];
  anomalies: number;
}

/** The latest anomaly count: ticks are newer than the overview. */
function anomaliesOf(received: Received | undefined, overview: Overview | undefined): number {
  return Math.max(received?.status?.totals.anomalies ?? 0, overview?.figures.anomalies ?? 0);
}

/**
 * Provides the session: the run in the address, or else the watched run, and its overview, first fetched and then streamed.
 */
export function SessionProvider(props: { run: string; open?: Open; children: ReactNode }) {
  const runs = useAnswer<Runs>('api/v1/runs');
  const names = useMemo(() => (runs.data?.rows ?? []).map((r) => r.name), [runs.data]);
  const run = props.run !== '' ? props.run : (runs.data?.watched ?? '');
  const received = useStream(run, props.open);
  const [round, setRound] = useState(0);
  const refresh = useCallback(() => setRound((n) => n + 1), []);
  const first = useAnswer<Overview>(
    run === '' ? undefined : runPath(run, 'overview'),
    received?.link === 'none' ? withoutStream : 0,
    round,
  );
  const latest =
    (received?.overviewAt ?? 0) >= first.at ? (received?.overview ?? first.data) : first.data;
  const newest = useMemo(() => latest && normalizeOverview(latest), [latest]);
  const [frozen, freeze] = useState<Frozen>();
  const [frozenRun, setFrozenRun] = useState(run);
  if (frozenRun !== run) {
    setFrozenRun(run);
    freeze(undefined);
  }
  const anomalies = anomaliesOf(received, newest);
  const pause = useCallback(
    (paused: boolean) => {
      freeze(paused ? { overview: newest, status: received?.status, anomalies } : undefined);
      if (!paused) refetchShown();
    },
    [newest, received?.status, anomalies],
  );
  const overview = frozen ? frozen.overview : newest;
  const live = newest?.live ?? false;
  const session: Session = {
    ...noSession,
    run,
    runs: names,
    overview,
    status: frozen ? frozen.status : received?.status,
    link: received?.link ?? 'connecting',
    heard: received?.at ?? 0,
    problem: overview === undefined ? (runs.problem ?? first.problem) : undefined,
    trouble: received?.problem ?? '',
    going: live && !frozen,
    paused: frozen !== undefined,
    missed: frozen ? Math.max(0, anomalies - frozen.anomalies) : 0,
    pause,
    refresh,
  };
  return <SessionContext value={session}>{props.children}</SessionContext>;
}
