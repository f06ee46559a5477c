import type { CallTimes, Comparison, Pair } from '../../api/index.ts';
import { count, duration } from '../../format/index.ts';
import { CallPath, FunctionName, type Column } from '../../ui/index.ts';
import { kindText, relative, signed } from './pair.ts';

/** A row of either table. */
export interface Row extends CallTimes {
  change: string;
  program: number;
  function: string;
  /** The call path with anomalies; empty for a function. */
  call_path: string;
  /** The compared amount: lost time or the time of all calls. */
  amount: Pair<number>;
  anomalies: Pair<number> | undefined;
  lost_us: Pair<number>;
  hosts: Pair<string[]>;
}

export function keyOf(r: Row): string {
  return `${r.program}:${r.call_path === '' ? r.function : r.call_path}`;
}

export function rowsOf(c: Comparison, by: 'lost' | 'time'): Row[] {
  if (by === 'lost') return c.changes.map((x) => ({ ...x, amount: x.lost_us }));
  return c.functions.map((x) => ({
    ...x,
    call_path: '',
    amount: x.exclusive_us,
    anomalies: undefined,
    hosts: [[], []],
  }));
}

const width = 180;

/** Bars of A to the left and B to the right of a line. */
export function MirroredBars({ amount, most }: { amount: Pair<number>; most: number }) {
  const part = (v: number) => `${most > 0 ? Math.max((v / most) * 100, v > 0 ? 1 : 0) : 0}%`;
  return (
    <span
      className="mirrored"
      role="img"
      aria-label={`${duration(amount[0])} in A, ${duration(amount[1])} in B`}
    >
      <span className="mirrored-a">
        <span style={{ width: part(amount[0]) }} />
      </span>
      <span className="mirrored-b">
        <span style={{ width: part(amount[1]) }} />
      </span>
    </span>
  );
}

export function Kind({ change }: { change: string }) {
  return (
    <span className={`compare-kind ${change}`} title={kindText[change]}>
      {change}
    </span>
  );
}

/** Formats a distance with two digits, or – if unknown. */
export function distanceText(d: number | undefined): string {
  return d === undefined ? '–' : d > 0 && d < 0.005 ? '< 0.01' : d.toFixed(2);
}

export const distanceTitle =
  'Kolmogorov–Smirnov distance of the call times, from 0 (same) to 1 (disjoint)';
export const movedTitle = 'Wasserstein (earth mover’s) distance: mean shift of a call’s time';

export function changeColumns(by: 'lost' | 'time', most: number, programs: boolean): Column<Row>[] {
  const lost = by === 'lost';
  const time = (
    id: string,
    header: string,
    title: string,
    of: (r: Row) => number,
  ): Column<Row> => ({
    id,
    header,
    title,
    align: 'right',
    unit: 'us',
    value: of,
    cell: (r) => duration(of(r)),
  });
  const what = lost ? 'Lost to anomalies' : 'Own time of all calls';
  return [
    {
      id: 'kind',
      header: 'Change',
      title: 'Changed by more than 10 %, or only in one run',
      value: (r) => r.change,
      cell: (r) => <Kind change={r.change} />,
    },
    {
      id: 'function',
      header: 'Function',
      grow: true,
      value: (r) => r.function,
      cell: (r) => <FunctionName name={r.function} most={48} />,
    },
    ...(lost
      ? [
          {
            id: 'path',
            header: 'Call path',
            title: 'End of the call path',
            value: (r: Row) => r.call_path,
            cell: (r: Row) => <CallPath path={r.call_path} parts={2} />,
            hidden: true,
          },
        ]
      : []),
    {
      id: 'program',
      header: 'Program',
      align: 'right',
      hidden: !programs,
      value: (r) => r.program,
    },
    {
      id: 'bars',
      header: 'A ◂ ▸ B',
      title: `${what}: A to the left, B to the right`,
      width,
      value: (r) => r.amount[1] - r.amount[0],
      unsorted: true,
      cell: (r) => <MirroredBars amount={r.amount} most={most} />,
    },
    time('a', 'A', `${what} in A`, (r) => r.amount[0]),
    time('b', 'B', `${what} in B`, (r) => r.amount[1]),
    {
      id: 'change',
      header: 'B − A',
      title: `${what}: how much more in B`,
      align: 'right',
      value: (r) => r.amount[1] - r.amount[0],
      cell: (r) => (
        <span className={relative(r.amount) > 0 ? 'more' : 'less'}>
          {signed(r.amount[1] - r.amount[0])}
        </span>
      ),
    },
    ...(lost
      ? [
          {
            id: 'anomalies',
            header: 'Anomalies',
            title: 'Without withdrawn ones, A → B',
            align: 'right' as const,
            value: (r: Row) => r.anomalies?.[1],
            cell: (r: Row) => `${count(r.anomalies?.[0])} → ${count(r.anomalies?.[1])}`,
          },
        ]
      : []),
    {
      id: 'mean',
      header: 'Mean call time',
      title: 'Mean own time of a call, A → B',
      align: 'right',
      value: (r) => r.mean_us[1] - r.mean_us[0],
      cell: (r) => `${duration(r.mean_us[0])} → ${duration(r.mean_us[1])}`,
    },
    {
      id: 'calls',
      header: 'Calls',
      title: 'Calls of the function on all paths, A → B',
      align: 'right',
      hidden: true,
      value: (r) => r.calls[1],
      cell: (r) => `${count(r.calls[0])} → ${count(r.calls[1])}`,
    },
    {
      id: 'distance',
      header: 'Distance',
      title: distanceTitle,
      align: 'right',
      value: (r) => r.distance,
      cell: (r) => distanceText(r.distance),
    },
    {
      id: 'moved',
      header: 'Moved',
      title: movedTitle,
      align: 'right',
      hidden: lost,
      unit: 'us',
      value: (r) => r.moved_us,
      cell: (r) => duration(r.moved_us),
    },
  ];
}
