import { useState } from 'react';
import type { Status } from '../../api/index.ts';
import { bytes, count, factor, plural, rate, seconds, short } from '../../format/index.ts';
import { Sparkline, Tile } from '../../ui/index.ts';
import { sums, type Sums } from './figures.ts';

const most = 60; // ticks, a minute

/** The sums of the last minute, the newest last; those of times that were taken twice are there once. */
function useHistory(status: Status, now: Sums): readonly Sums[] {
  const [kept, keep] = useState<{ at: string; list: readonly Sums[] }>({ at: '', list: [] });
  if (kept.at !== status.run.now) {
    const list = [...kept.list, now].slice(-most);
    keep({ at: status.run.now, list });
    return list;
  }
  return kept.list;
}

/** The key figures of the pipeline. */
export function PipelineTiles({ status }: { status: Status }) {
  const now = sums(status);
  const history = useHistory(status, now);
  const t = status.totals;
  const { store } = status;
  const line = (label: string, f: (s: Sums) => number) =>
    history.length > 2 && history.some((h) => f(h) > 0) ? (
      <Sparkline values={history.map(f)} label={label} width={110} height={14} />
    ) : undefined;
  const command = `chimbuko status ${status.run.name}`;
  return (
    <div className="tiles">
      <Tile
        label="Events in"
        value={now.eventsPerSecond > 0 ? rate(now.eventsPerSecond) : short(t.events)}
        note={
          line('events a second, last minute', (s) => s.eventsPerSecond) ??
          `${short(t.events)} in all`
        }
        explain={{
          formula:
            'Events that all analyzers read from traces in a second: entries, exits, messages, counters.',
          from: [
            ['events', count(t.events)],
            ['calls judged', count(t.calls)],
            ['bytes read', bytes(t.bytes_read)],
          ],
          command,
        }}
      />
      <Tile
        label="Kept"
        value={short(t.records_stored)}
        note={
          t.records_stored > 0
            ? `1 of ${short(t.calls / t.records_stored)} calls`
            : 'records stored'
        }
        explain={{
          formula: 'Records in the store, and how many calls were judged for one of them.',
          from: [
            ['records sent', count(t.records_sent)],
            ['records stored', count(t.records_stored)],
            [
              'calls for one record',
              t.records_stored > 0 ? factor(t.calls / t.records_stored) : '–',
            ],
          ],
          command,
        }}
      />
      <Tile
        label="Furthest behind"
        value={seconds(now.behind)}
        note={line('seconds behind, last minute', (s) => s.behind) ?? 'of all analyzers'}
        level={now.behind > 10 ? 'watch' : ''}
        explain={{
          formula:
            'How old the newest data were that the slowest analyzer could have read and has not.',
          command,
        }}
      />
      <Tile
        label="Wait to be sent"
        value={count(now.outboxMessages)}
        note={bytes(now.outboxBytes)}
        level={now.outboxMessages > 100 ? 'watch' : ''}
        explain={{
          formula: 'Messages that analyzers made and the bus has not taken yet.',
          command,
        }}
      />
      <Tile
        label="Dropped"
        value={count(now.drops)}
        note="messages given up"
        level={now.drops > 0 ? 'bad' : ''}
        explain={{ formula: 'Messages that found no room at an analyzer.', command }}
      />
      <Tile
        label="Exchange p99"
        value={seconds(now.p99)}
        note={`p50 ${seconds(now.p50)}`}
        explain={{
          formula:
            'How long the parameter server took lately for an exchange of models: 99 of 100 were faster.',
          command,
        }}
      />
      <Tile
        label="Store lag"
        value={store ? seconds(store.lag_seconds) : '–'}
        note={
          store
            ? `${count(store.pending_messages)} wait · ${bytes(store.pending_bytes)}`
            : 'no store here'
        }
        level={store && (store.lag_seconds > 10 || (store.last_error ?? '') !== '') ? 'watch' : ''}
        explain={{ formula: 'Age of the oldest record that is not stored yet.', command }}
      />
      <Tile
        label="Cost of the tool"
        value={now.cpu === undefined ? '–' : `${(now.cpu / 100).toFixed(2)} cores`}
        note={`${bytes(now.rss)} · ${plural(status.nodes?.length ?? 0, 'analyzer')}`}
        explain={{
          formula:
            'Processor time of all analyzers since they came, over the time since then, and their memory now.',
          command,
        }}
      />
    </div>
  );
}
