import { useState } from 'react';
import { useCommand, type Status } from '../../api/index.ts';
import { bytes, count, factor, plural, rate, seconds, short } from '../../format/index.ts';
import { Sparkline, Tile } from '../../ui/index.ts';
import { sums, type Sums } from './figures.ts';

const most = 60; // ticks, a minute

/** The sums of the last minute, oldest first, without duplicates. */
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
  const command = useCommand()('status');
  return (
    <div className="tiles">
      <Tile
        label="Events in"
        value={now.eventsPerSecond > 0 ? rate(now.eventsPerSecond) : short(t.events)}
        note={
          line('events per second, last minute', (s) => s.eventsPerSecond) ??
          `${short(t.events)} in total`
        }
        explain={{
          formula:
            'Events read from traces per second by all analyzers: entries, exits, messages, counters.',
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
          formula: 'Records in the store, and calls judged per record.',
          from: [
            ['records sent', count(t.records_sent)],
            ['records stored', count(t.records_stored)],
            ['calls per record', t.records_stored > 0 ? factor(t.calls / t.records_stored) : '–'],
          ],
          command,
        }}
      />
      <Tile
        label="Delay"
        value={seconds(now.behind)}
        note={line('seconds behind, last minute', (s) => s.behind) ?? 'slowest analyzer'}
        level={now.behind > 10 ? 'watch' : ''}
        explain={{
          formula: 'Age of the newest data that the slowest analyzer has not read.',
          command,
        }}
      />
      <Tile
        label="Outbox"
        value={count(now.outboxMessages)}
        note={bytes(now.outboxBytes)}
        level={now.outboxMessages > 100 ? 'watch' : ''}
        explain={{
          formula: 'Messages that the bus has not accepted yet.',
          command,
        }}
      />
      <Tile
        label="Dropped"
        value={count(now.drops)}
        note="messages"
        level={now.drops > 0 ? 'bad' : ''}
        explain={{ formula: 'Messages that did not fit into the outbox of an analyzer.', command }}
      />
      <Tile
        label="Exchange p99"
        value={seconds(now.p99)}
        note={`p50 ${seconds(now.p50)}`}
        explain={{
          formula:
            '99th percentile of recent times for a model exchange with the parameter server.',
          command,
        }}
      />
      <Tile
        label="Store lag"
        value={store ? seconds(store.lag_seconds) : '–'}
        note={
          store
            ? `${count(store.pending_messages)} pending · ${bytes(store.pending_bytes)}`
            : 'no store'
        }
        level={store && (store.lag_seconds > 10 || (store.last_error ?? '') !== '') ? 'watch' : ''}
        explain={{ formula: 'Age of the oldest record not stored yet.', command }}
      />
      <Tile
        label="Overhead"
        value={now.cpu === undefined ? '–' : `${(now.cpu / 100).toFixed(2)} cores`}
        note={`${bytes(now.rss)} · ${plural(status.nodes?.length ?? 0, 'analyzer')}`}
        explain={{
          formula: 'Mean CPU use of all analyzers since they connected, and their current memory.',
          command,
        }}
      />
    </div>
  );
}
