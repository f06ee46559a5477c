import type { Figures } from '../../api/index.ts';
import {
  coreHours,
  count,
  duration,
  percent,
  plural,
  rate,
  seconds,
  short,
} from '../../format/index.ts';
import { Tile } from '../../ui/index.ts';

/** The key figures, each with how it is made and the command that tells the same. */
export function Tiles({ figures: f, live, run }: { figures: Figures; live: boolean; run: string }) {
  const provisional = f.provisional ? 'provisional until the run ends' : 'after the review';
  return (
    <div className="tiles">
      <Tile
        label="Lost time"
        value={f.lost_percent === undefined ? duration(f.lost_us) : percent(f.lost_percent)}
        note={coreHours(f.core_hours_lost)}
        level={f.lost_percent !== undefined && f.lost_percent >= 1 ? 'bad' : ''}
        explain={{
          formula:
            'Time beyond what is typical, of all anomalies that are nobody’s victims, and of the waits because of them, in percent of the time of all ranks.',
          from: [
            ['lost', duration(f.lost_us)],
            ['of it muted or expected', duration(f.muted_lost_us)],
            ['ranks', count(f.ranks)],
          ],
          command: `chimbuko issues ${run}`,
        }}
      />
      <Tile
        label="Anomalies"
        value={short(f.anomalies)}
        note={`${short(f.anomalies_per_hour)}/h · ${f.provisional ? 'provisional' : 'final'}`}
        explain={{
          formula: `Calls that do not fit what is typical of their function, without those that were withdrawn; ${provisional}.`,
          from: [
            ['anomalies', count(f.anomalies)],
            ['of them waited for somebody', count(f.victims)],
            ['calls judged', count(f.calls)],
          ],
          command: `chimbuko anomalies ${run}`,
        }}
      />
      <Tile
        label="Issues"
        value={count(f.issues)}
        note={f.issues_muted > 0 ? `${count(f.issues_muted)} muted or expected` : 'none muted'}
        explain={{
          formula:
            'Anomalies with the same function, call path, kind and cause are one issue. Waits because of an issue are told with it.',
          from: [['muted or expected', count(f.issues_muted)]],
          command: `chimbuko issues ${run}`,
        }}
      />
      <Tile
        label={live ? 'Events in → kept' : 'Events → kept'}
        value={
          live && f.events_per_second !== undefined ? rate(f.events_per_second) : short(f.events)
        }
        note={`→ ${short(f.kept)} kept${f.reduction === undefined ? '' : ` · 1 of ${count(f.reduction)}`}`}
        explain={{
          formula:
            'Entries, exits, messages and counters read from the traces, and the executions that are stored of them, typical ones for comparison included.',
          from: [
            ['events', count(f.events)],
            ['calls', count(f.calls)],
            ['executions kept', count(f.kept)],
            [
              'calls judged for one that is kept',
              f.reduction === undefined ? '–' : short(f.reduction),
            ],
          ],
          command: `chimbuko status ${run}`,
        }}
      />
      <Tile
        label="Models ready"
        value={
          f.functions_warm === undefined || f.functions === 0
            ? '–'
            : percent((100 * f.functions_warm) / f.functions)
        }
        note={
          f.functions_warm === undefined
            ? 'not known'
            : `${count(f.functions_warm)} of ${plural(f.functions, 'function')}`
        }
        explain={{
          formula: `Functions with at least ${f.functions_min_calls ?? 'enough'} calls: of others nothing is flagged, or it is provisional.`,
          from: [['functions', count(f.functions)]],
          command: `chimbuko top ${run}`,
        }}
      />
      <Tile
        label="Ranks"
        value={
          f.ranks_expected === undefined
            ? count(f.ranks)
            : `${count(f.ranks)} / ${count(f.ranks_expected)}`
        }
        note={`on ${plural(f.hosts, 'host')}`}
        level={f.ranks_expected !== undefined && f.ranks < f.ranks_expected ? 'watch' : ''}
        explain={{
          formula: 'Ranks that have been seen, and how many should come where that is known.',
          ...(f.last_event_age_seconds === undefined
            ? {}
            : { from: [['newest data', `${seconds(f.last_event_age_seconds)} old`]] as const }),
          command: `chimbuko status ${run}`,
        }}
      />
      <Tile
        label="Dropped"
        value={count(f.dropped)}
        note={f.dropped === undefined ? 'nothing watches the run' : 'messages'}
        level={(f.dropped ?? 0) > 0 ? 'watch' : ''}
        explain={{
          formula:
            'Messages that analyzers gave up because there was no room for them. What they held is not shown anywhere.',
          command: `chimbuko status ${run}`,
        }}
      />
    </div>
  );
}
