import { createContext, useContext } from 'react';
import type { Problem } from './client.ts';
import type { Overview, Status } from './types.gen.ts';

/** What all views know of the run that is shown. */
export interface Session {
  /** Name of the run; empty until it is known. */
  run: string;
  /** Names of all runs of the store. */
  runs: readonly string[];
  /** The newest overview, or that of the moment when the picture was frozen. */
  overview: Overview | undefined;
  /** The newest state of the pipeline, without ranks; undefined where nothing watches the run. */
  status: Status | undefined;
  /** connecting, open, cut, or none where there is no stream. */
  link: 'connecting' | 'open' | 'cut' | 'none';
  /** When something was last heard, in milliseconds of Date.now. */
  heard: number;
  /** What keeps the page from showing anything. */
  problem: Problem | undefined;
  /** What the server could not tell in the last second; empty: all is well. */
  trouble: string;
  /** The run goes on and the picture moves: questions are asked again. */
  going: boolean;
  paused: boolean;
  /** Anomalies since the picture was frozen. */
  missed: number;
  pause: (paused: boolean) => void;
  /** Asks for the overview again: after something was changed. */
  refresh: () => void;
}

/** A session that knows nothing. */
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

/** The session of the page. */
export function useLive(): Session {
  return useContext(SessionContext);
}
