import { createContext, useContext } from 'react';
import { shellWord } from '../format/index.ts';
import type { Problem } from './client.ts';
import type { Overview, Status } from './types.gen.ts';

/** State of the selected run, shared by all views. */
export interface Session {
  /** Name of the run; empty while loading. */
  run: string;
  /** Names of all runs in the store. */
  runs: readonly string[];
  /** The latest overview, or the one shown when the page was paused. */
  overview: Overview | undefined;
  /** The latest pipeline status, without ranks; undefined if no process watches the run. */
  status: Status | undefined;
  /** connecting, open, cut, or none if the run has no stream. */
  link: 'connecting' | 'open' | 'cut' | 'none';
  /** When the last event arrived, in milliseconds of Date.now. */
  heard: number;
  /** Reason for a missing overview. */
  problem: Problem | undefined;
  /** The server's error of the last second; empty if none. */
  trouble: string;
  /** Whether the run is live and the page not paused, so that queries repeat. */
  going: boolean;
  paused: boolean;
  /** Anomalies found since the page was paused. */
  missed: number;
  pause: (paused: boolean) => void;
  /** Refetches the overview after a change. */
  refresh: () => void;
}

/** An empty session. */
export const noSession: Session = {
  run: '',
  runs: [],
  overview: undefined,
  status: undefined,
  link: 'connecting',
  heard: 0,
  problem: undefined,
  trouble: '',
  going: false,
  paused: false,
  missed: 0,
  pause: () => undefined,
  refresh: () => undefined,
};

export const SessionContext = createContext<Session>(noSession);

/** Returns a function that formats a command about the run, with its place and, if the place has several runs, its name. */
export function useCommand(): (name: string) => string {
  const { overview, run, runs } = useLive();
  const place = overview?.place === undefined ? 'RUN' : shellWord(overview.place);
  const which = runs.length > 1 ? ` --run ${shellWord(run)}` : '';
  return (name) => `chimbuko ${name} ${place}${which}`;
}

/** The session of the page. */
export function useLive(): Session {
  return useContext(SessionContext);
}
