import { useCommand, type Figures } from '../../api/index.ts';
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

/** The key figures, each with an explanation and the equivalent command. */
export function Tiles({ figures: f, live }: { figures: Figures; live: boolean }) {
  const command = useCommand();
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
            'Time beyond the usual of all root-cause anomalies and of the waits they caused, in percent of the time of all ranks.',
          from: [
            ['lost', duration(f.lost_us)],
            ['muted or expected', duration(f.muted_lost_us)],
            ['ranks', count(f.ranks)],
          ],
          command: command('findings'),
        }}
      />
      <Tile
        label="Anomalies"
        value={short(f.anomalies)}
        note={`${short(f.anomalies_per_hour)}/h · ${f.provisional ? 'provisional' : 'final'}`}
        explain={{
          formula: `Calls with an unusual time for their function, without withdrawn ones; ${provisional}.`,
          from: [
            ['anomalies', count(f.anomalies)],
            ['waits for others', count(f.victims)],
            ['calls judged', count(f.calls)],
          ],
          command: command('anomalies'),
        }}
      />
      <Tile
        label="Findings"
        value={count(f.findings)}
        note={f.findings_muted > 0 ? `${count(f.findings_muted)} muted or expected` : 'none muted'}
        explain={{
          formula:
            'Anomalies with the same function, call path, kind and cause form one finding. A finding includes the waits it caused.',
          from: [['muted or expected', count(f.findings_muted)]],
          command: command('findings'),
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
            'Entries, exits, messages and counters read from the traces, and the executions stored from them, including typical ones for comparison.',
          from: [
            ['events', count(f.events)],
            ['calls', count(f.calls)],
            ['executions kept', count(f.kept)],
            ['calls per kept execution', f.reduction === undefined ? '–' : short(f.reduction)],
          ],
          command: command('status'),
        }}
      />
      <Tile
        label="Functions judged"
        value={
          f.functions_warm === undefined || f.functions === 0
            ? '–'
            : `${count(f.functions_warm)} of ${count(f.functions)}`
        }
        note={
          f.functions_warm === undefined || f.functions === 0
            ? 'unknown'
            : percent((100 * f.functions_warm) / f.functions)
        }
        explain={{
          formula: `Functions with at least ${f.functions_min_calls ?? 'enough'} calls. Calls of other functions are not judged, or only provisionally.`,
          from: [['functions', count(f.functions)]],
          command: command('top'),
        }}
      />
      <Tile
        label="Ranks"
        value={
          f.ranks_expected === undefined
            ? count(f.ranks)
            : `${count(f.ranks)} / ${count(f.ranks_expected)}`
        }
        note={f.hosts === 0 ? 'on unknown hosts' : `on ${plural(f.hosts, 'host')}`}
        level={f.ranks_expected !== undefined && f.ranks < f.ranks_expected ? 'watch' : ''}
        explain={{
          formula: 'Ranks seen, and ranks expected if known.',
          ...(f.last_event_age_seconds === undefined
            ? {}
            : { from: [['newest data', `${seconds(f.last_event_age_seconds)} old`]] as const }),
          command: command('status'),
        }}
      />
      <Tile
        label="Dropped"
        value={count(f.dropped)}
        note={f.dropped === undefined ? 'run not watched' : 'messages'}
        level={(f.dropped ?? 0) > 0 ? 'watch' : ''}
        explain={{
          formula:
            'Messages that analyzers dropped because their outbox was full. Their data are lost.',
          command: command('status'),
        }}
      />
    </div>
  );
}
