import type { ReactNode } from 'react';
import type { FunctionRow } from '../../api/index.ts';
import { groupVar, groupWords } from '../../color/index.ts';
import { count, duration, percent, source } from '../../format/index.ts';
import { FunctionName, type Column } from '../../ui/index.ts';

/** A value that may not be known yet: then a dash that says when it will be. */
function known(value: number | undefined, write: (n: number) => string, when: string): ReactNode {
  if (value === undefined) return <span title={when}>–</span>;
  return value === 0 ? <span className="muted">{write(value)}</span> : write(value);
}

/** When what is missing will be there. */
export function whenKnown(live: boolean): string {
  return live ? 'Known when the run has ended' : 'It was not stored with this run';
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
    value,
    cell: (r) => known(value(r), write, when),
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
    number('lost', 'Lost', 'Time lost by its anomalies', (r) => r.lost_us, duration),
    number('anomalies', 'Anomalies', 'Anomalies that count', (r) => r.anomalies, count),
    number(
      'calls%',
      'of calls',
      'Anomalies, in percent of all calls',
      (r) => r.anomalous_calls_percent,
      percent,
    ),
    number(
      'time%',
      'of time',
      'Time of anomalies, in percent of the time of all calls, without what they call',
      (r) => r.anomalous_time_percent,
      percent,
    ),
    number('calls', 'Calls', 'All calls, on all ranks', (r) => r.calls, count),
    number(
      'exclusive',
      'Itself',
      'Time of all calls, without what they call',
      (r) => r.exclusive_us,
      duration,
    ),
    number(
      'exmean',
      'mean',
      'Mean time of a call, without what it calls',
      (r) => r.exclusive_mean_us,
      duration,
    ),
    number(
      'exmax',
      'max',
      'Longest call, without what it calls',
      (r) => r.exclusive_max_us,
      duration,
    ),
    number(
      'inclusive',
      'In all',
      'Time of all calls, with what they call',
      (r) => r.inclusive_us,
      duration,
    ),
    number(
      'inmean',
      'mean in all',
      'Mean time of a call, with what it calls',
      (r) => r.inclusive_mean_us,
      duration,
      { hidden: true },
    ),
    number(
      'modes',
      'Modes',
      'Usual times that its model knows: one, or several where it does different things',
      (r) => r.modes,
      count,
    ),
    { id: 'id', header: 'Id', hidden: true, value: (r) => r.id },
  ];
}
