import { useEffect, useState } from 'react';
import { useLive, type Overview, type PacketsInfo } from '../api/index.ts';
import { clock, count, wall } from '../format/index.ts';
import { go, useRoute } from '../route/index.ts';
import { toggleTheme, useTheme } from '../theme/index.ts';
import { Brush } from './Brush.tsx';
import { Chips } from './Chips.tsx';
import { MoonIcon, PauseIcon, PlayIcon, SunIcon } from './icons.tsx';
import { Search } from './Search.tsx';
import { Share } from './Share.tsx';
import { Views } from './Views.tsx';

const states: Readonly<Record<string, string>> = {
  waiting: 'WAITING',
  running: 'LIVE',
  reviewing: 'REVIEWING',
  finished: 'ENDED',
  failed: 'FAILED',
  incomplete: 'INCOMPLETE',
};

/** Labels of packet sources. */
function packetsWord(p: PacketsInfo, live: boolean): string {
  if (!p.replay) return 'PACKETS';
  if (!live) return 'REPLAY ENDED';
  return p.speed === undefined ? 'REPLAY' : `REPLAY ×${p.speed}`;
}

/** Label of the run's state. */
function RunState({ overview }: { overview: Overview | undefined }) {
  const state = overview?.state ?? '';
  const live = overview?.live === true;
  // A running run that no process watches stopped early.
  const word = overview?.packets
    ? packetsWord(overview.packets, live)
    : state === 'running' && !live
      ? 'STOPPED EARLY'
      : overview?.incomplete === true && state === 'finished'
        ? 'INCOMPLETE'
        : (states[state] ?? '…');
  return <span className={`run-state ${live ? state : ''}`}>{word}</span>;
}

/** The time since the start; it advances between overviews while the run is live. */
function Clock({ overview }: { overview: Overview | undefined }) {
  const { going } = useLive();
  const length = overview?.length_s ?? 0;
  const [now, setNow] = useState(() => Date.now());
  const [base, setBase] = useState({ length, at: now });
  if (base.length !== length) setBase({ length, at: now });
  const moving = going && overview?.state === 'running';
  useEffect(() => {
    if (!moving) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [moving]);
  if (length <= 0) return null;
  const s = moving ? length + Math.min(10, Math.max(0, (now - base.at) / 1000)) : length;
  return (
    <time className="run-clock" title={`since ${wall(overview?.began, 0)}`}>
      {clock(s, moving ? Infinity : length)}
    </time>
  );
}

/** Pauses updates and counts the anomalies found since. */
function Pause() {
  const { paused, missed, pause, overview } = useLive();
  if (overview?.live !== true && !paused) return null;
  return (
    <button
      type="button"
      className={`button ${paused ? 'paused' : ''}`}
      aria-pressed={paused}
      title="Pause updates (p)"
      onClick={() => pause(!paused)}
    >
      {paused ? <PlayIcon /> : <PauseIcon />}
      {paused ? `+${count(missed)} new — resume` : 'Pause'}
    </button>
  );
}

/** Selects a run if the store has several. */
function RunName() {
  const { run, runs, overview } = useLive();
  if (runs.length < 2) return <strong className="run-name">{overview?.run ?? run}</strong>;
  return (
    <select
      className="field"
      aria-label="Run"
      value={run}
      onChange={(e) => go({ query: { run: e.target.value, t0: '', t1: '', sel: '' } })}
    >
      {(runs.includes(run) ? runs : [run, ...runs]).map((r) => (
        <option key={r}>{r}</option>
      ))}
    </select>
  );
}

/** Selects a program if the workflow has several. */
function ProgramChoice() {
  const { overview } = useLive();
  const { query } = useRoute();
  const programs = overview?.programs ?? [];
  if (programs.length < 2) return null;
  return (
    <select
      className="field"
      aria-label="Program"
      value={query.program ?? ''}
      onChange={(e) => go({ query: { program: e.target.value } })}
    >
      <option value="">all programs</option>
      {programs.map((p) => (
        <option key={p.program} value={p.program}>
          {p.program}
          {p.name ? ` · ${p.name}` : ''} ({count(p.ranks)} ranks)
        </option>
      ))}
    </select>
  );
}

/** The bar above all views. */
export function TopBar(props: { onHelp: () => void }) {
  const { overview } = useLive();
  const theme = useTheme();
  return (
    <header className="bar">
      <div className="bar-run">
        <RunName />
        <RunState overview={overview} />
        <Clock overview={overview} />
        <ProgramChoice />
      </div>
      <Brush />
      <Chips />
      <Search />
      <div className="bar-tools">
        <Pause />
        <Views />
        <Share />
        <button
          type="button"
          className="button quiet icon"
          title="Switch theme (t)"
          onClick={toggleTheme}
        >
          {theme === 'dark' ? <SunIcon /> : <MoonIcon />}
          <span className="visually-hidden">{theme === 'dark' ? 'Light theme' : 'Dark theme'}</span>
        </button>
        <button
          type="button"
          className="button quiet icon"
          title="Shortcuts (?)"
          onClick={props.onHelp}
        >
          <span aria-hidden="true">?</span>
          <span className="visually-hidden">Help: keyboard shortcuts</span>
        </button>
      </div>
    </header>
  );
}
