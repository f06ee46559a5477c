import type { ReactNode } from 'react';
import type { FunctionRow } from '../../api/index.ts';
import { groupVar, groupWords } from '../../color/index.ts';
import { count, duration, percent, source } from '../../format/index.ts';
import { FunctionName, type Column } from '../../ui/index.ts';

/** A value, or a dash whose tooltip states when it will be available. */
function valueOrDash(
  value: number | undefined,
  write: (n: number) => string,
  when: string,
): ReactNode {
  if (value === undefined) return <span title={when}>–</span>;
  return value === 0 ? <span className="muted">{write(value)}</span> : write(value);
}

/** When missing values become available. */
export function whenKnown(live: boolean): string {
  return live ? 'Available when the run ends' : 'Not stored with this run';
}

/** Columns of the table of functions. */
export function functionColumns(live: boolean, programs: boolean): Column<FunctionRow>[] {
  const when = whenKnown(live);
  const number = (
    id: string,
    header: string,
    title: string,
    value: (r: FunctionRow) => number | undefined,
    write: (n: number) => string,
    more: Partial<Column<FunctionRow>> = {},
  ): Column<FunctionRow> => ({
    id,
    header,
    title,
    align: 'right',
    ...(write === duration ? { unit: 'us' as const } : {}),
    value,
    cell: (r) => valueOrDash(value(r), write, when),
    ...more,
  });
  return [
    {
      id: 'function',
      header: 'Function',
      grow: true,
      value: (r) => r.function,
      cell: (r) => (
        <span className="function-cell">
          <span
            className="dot"
            style={{ background: groupVar(r.group) }}
            title={groupWords[r.group]}
          />
          <FunctionName name={r.function} most={64} />
          <span className="name-place">{source(r.function)}</span>
        </span>
      ),
    },
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (r) => r.program,
    },
    { id: 'group', header: 'Group', hidden: true, value: (r) => groupWords[r.group] ?? r.group },
    number('lost', 'Lost', 'Time lost to anomalies', (r) => r.lost_us, duration),
    number(
      'anomalies',
      'Anomalies',
      'Anomalies, without withdrawn ones',
      (r) => r.anomalies,
      count,
    ),
    number(
      'calls%',
      'of calls',
      'Anomalies in percent of all calls',
      (r) => r.anomalous_calls_percent,
      percent,
    ),
    number(
      'time%',
      'of time',
      'Own time of anomalies in percent of the own time of all calls',
      (r) => r.anomalous_time_percent,
      percent,
    ),
    number('calls', 'Calls', 'All calls, on all ranks', (r) => r.calls, count),
    number(
      'exclusive',
      'Own time',
      'Own time of all calls, without callees',
      (r) => r.exclusive_us,
      duration,
    ),
    number('exmean', 'mean', 'Mean own time of a call', (r) => r.exclusive_mean_us, duration),
    number('exmax', 'max', 'Longest own time of a call', (r) => r.exclusive_max_us, duration),
    number(
      'inclusive',
      'Inclusive',
      'Time of all calls, including callees',
      (r) => r.inclusive_us,
      duration,
    ),
    number(
      'inmean',
      'mean inclusive',
      'Mean time of a call, including callees',
      (r) => r.inclusive_mean_us,
      duration,
      { hidden: true },
    ),
    number(
      'modes',
      'Modes',
      'Number of usual times in the model; several if the function has different workloads',
      (r) => r.modes,
      count,
    ),
    { id: 'id', header: 'Id', hidden: true, value: (r) => r.id },
  ];
}
