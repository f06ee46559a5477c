import type { Clock, Collective, GPUTime, StreamTime } from '../../api/index.ts';
import { bytes, clock, count, duration, percent, unknown } from '../../format/index.ts';
import type { Target } from '../../route/index.ts';
import type { Column } from '../../ui/index.ts';
import { shareOf, shareText } from './parts.ts';
import { ShareBar } from './StackedBars.tsx';

/** A column with a part of the total in percent. */
function share(
  id: string,
  header: string,
  title: string,
  time: (t: GPUTime) => number,
): Column<GPUTime> {
  return {
    id,
    header,
    title,
    align: 'right',
    value: (t) => shareOf(time(t), t.total_us),
    cell: (t) => <span title={duration(time(t))}>{shareText(time(t), t.total_us)}</span>,
  };
}

/** The columns that ranks and steps share. */
const times: readonly Column<GPUTime>[] = [
  {
    id: 'bar',
    header: 'Division',
    width: 160,
    unsorted: true,
    value: () => undefined,
    cell: (t) => <ShareBar time={t} />,
  },
  {
    id: 'total',
    header: 'Total',
    align: 'right',
    unit: 'us',
    value: (t) => t.total_us,
    cell: (t) => duration(t.total_us),
  },
  share('compute', 'Compute', 'Share of the total in which kernels compute', (t) => t.compute_us),
  share(
    'communication',
    'Communication',
    'Share of the total with communication and without computation',
    (t) => t.exposed_communication_us,
  ),
  share(
    'memory',
    'Memory',
    'Share of the total in which memory is copied and no kernel runs',
    (t) => t.exposed_memory_us,
  ),
  share('idle', 'Idle', 'Share of the total without any activity', (t) => t.idle_us),
  share(
    'host',
    'Host wait',
    'Idle because the host launched the next kernel too late',
    (t) => t.host_wait_us,
  ),
  share(
    'kernel',
    'Kernel wait',
    'Idle for less than 30 µs although the next kernel was launched in time',
    (t) => t.kernel_wait_us,
  ),
  share(
    'other',
    'Other wait',
    'Idle for another reason, such as a wait for another stream',
    (t) => t.other_wait_us,
  ),
  {
    id: 'overlap',
    header: 'Overlap',
    title: 'Share of the time of communication that computation hides',
    align: 'right',
    value: (t) => shareOf(t.overlap_us, t.communication_us),
    cell: (t) => (
      <span title={`${duration(t.overlap_us)} of ${duration(t.communication_us)}`}>
        {shareText(t.overlap_us, t.communication_us)}
      </span>
    ),
  },
];

/** Columns of the table of ranks. */
export function rankColumns(programs: boolean, hosts: boolean): Column<GPUTime>[] {
  return [
    { id: 'rank', header: 'Rank', align: 'right', value: (t) => t.rank },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (t) => t.program,
    },
    { id: 'hostname', header: 'Host', hidden: !hosts, value: (t) => t.host },
    ...times,
  ];
}

/** Columns of the table of steps. length is that of the run in seconds. */
export function stepColumns(length: number, href: (to: Target) => string): Column<GPUTime>[] {
  return [
    {
      id: 'step',
      header: 'Step',
      align: 'right',
      value: (t) => t.step,
      cell: (t) =>
        t.from_s === undefined ? (
          count(t.step)
        ) : (
          <a
            title="Findings on this rank during the step"
            href={href({
              view: 'findings',
              query: {
                rank: t.rank,
                t0: t.from_s.toFixed(6),
                t1: (t.from_s + t.total_us / 1e6).toFixed(6),
              },
            })}
          >
            {count(t.step)}
          </a>
        ),
    },
    {
      id: 'from',
      header: 'Start',
      align: 'right',
      unit: 's',
      value: (t) => t.from_s,
      cell: (t) => clock(t.from_s, length),
    },
    ...times,
  ];
}

/** Columns of the table of streams. */
export const streamColumns: readonly Column<StreamTime>[] = [
  { id: 'stream', header: 'Stream', value: (s) => s.name ?? `thread ${s.tid}` },
  {
    id: 'activities',
    header: 'Activities',
    align: 'right',
    value: (s) => s.activities,
    cell: (s) => count(s.activities),
  },
  ...(
    [
      ['busy_us', 'Busy'],
      ['host_wait_us', 'Host wait'],
      ['kernel_wait_us', 'Kernel wait'],
      ['other_wait_us', 'Other wait'],
    ] as const
  ).map(([id, header]): Column<StreamTime> => ({
    id,
    header,
    align: 'right',
    value: (s) => s[id],
    cell: (s) => duration(s[id]),
  })),
];

/** A column of a time that may be unknown. */
function time(
  id: string,
  header: string,
  title: string,
  us: (c: Collective) => number | null,
): Column<Collective> {
  return {
    id,
    header,
    title,
    align: 'right',
    value: (c) => us(c) ?? undefined,
    cell: (c) => duration(us(c) ?? undefined),
  };
}

/** Columns of the table of collective operations. */
export function collectiveColumns(programs: boolean): Column<Collective>[] {
  return [
    { id: 'operation', header: 'Operation', value: (c) => c.operation },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (c) => c.program,
    },
    { id: 'group', header: 'Group', title: 'Process group', value: (c) => c.process_group },
    {
      id: 'ranks',
      header: 'Ranks',
      title: 'Ranks of the group, and how many of them recorded the operation if not all',
      align: 'right',
      value: (c) => c.group_size,
      cell: (c) =>
        c.ranks_seen < c.group_size
          ? `${count(c.ranks_seen)} of ${count(c.group_size)}`
          : count(c.group_size),
    },
    {
      id: 'bytes',
      header: 'Bytes',
      align: 'right',
      value: (c) => c.bytes,
      cell: (c) => bytes(c.bytes),
    },
    { id: 'type', header: 'Type', hidden: true, value: (c) => c.dtype },
    {
      id: 'calls',
      header: 'Calls',
      align: 'right',
      value: (c) => c.calls,
      cell: (c) => count(c.calls),
    },
    time(
      'latency',
      'Latency',
      'Mean of the shortest duration over the ranks: the last rank to arrive does not wait',
      (c) => c.mean_latency_us,
    ),
    time('longest', 'Longest', 'The longest latency', (c) => c.max_latency_us),
    time(
      'skew',
      'Skew',
      'Mean time from the first to the last arrival, by corrected clocks',
      (c) => c.mean_skew_us,
    ),
    time('greatest', 'Greatest', 'The greatest skew', (c) => c.max_skew_us),
    {
      id: 'last',
      header: 'Last rank',
      title: 'The rank that arrived last most often',
      align: 'right',
      value: (c) => c.last_ranks[0]?.rank,
      cell: (c) => {
        const [last] = c.last_ranks;
        return last === undefined ? (
          unknown
        ) : (
          <span title={lastWords(c)}>
            {last.rank}{' '}
            <span className="muted">({percent(shareOf(last.calls, c.calls))} of calls)</span>
          </span>
        );
      },
    },
    {
      id: 'bandwidth',
      header: 'Bus bandwidth',
      title: 'Bytes per mean latency, times the factor of nccl-tests for the operation',
      align: 'right',
      value: (c) => (c.bus_bandwidth > 0 ? c.bus_bandwidth : undefined),
      cell: (c) => (c.bus_bandwidth > 0 ? `${bytes(c.bus_bandwidth)}/s` : unknown),
    },
  ];
}

/** How often ranks were last. */
function lastWords(c: Collective): string {
  const few = c.last_ranks.slice(0, 8).map((l) => `rank ${l.rank}: ${count(l.calls)}`);
  return few.join(', ') + (c.last_ranks.length > few.length ? ', …' : '');
}

/** Columns of the table of clocks. */
export function clockColumns(programs: boolean): Column<Clock>[] {
  return [
    { id: 'rank', header: 'Rank', align: 'right', value: (c) => c.rank },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (c) => c.program,
    },
    {
      id: 'offset',
      header: 'Offset',
      title: 'By how much the clock is ahead of that of the lowest rank',
      align: 'right',
      unit: 'us',
      value: (c) => c.offset_us,
      cell: (c) => (c.offset_us > 0 ? '+' : '') + duration(c.offset_us),
    },
    {
      id: 'matched',
      header: 'Collectives',
      title: 'Ends of collective operations that were compared',
      align: 'right',
      value: (c) => c.matched,
      cell: (c) => count(c.matched),
    },
  ];
}
