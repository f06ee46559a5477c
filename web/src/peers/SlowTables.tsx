import type { ReactNode } from 'react';
import type { RankFunction, Side, SlowCounter, SlowFunction } from '../api/index.ts';
import { duration, percent, plural, short, unknown } from '../format/index.ts';
import { useHref } from '../route/index.ts';
import { FunctionName, PlainTable } from '../ui/index.ts';
import './peers.css';

/** A function with a link to its details, if it has any. */
export function FunctionLink(props: { name: string; id: string | undefined; most?: number }) {
  const href = useHref();
  const name = <FunctionName name={props.name} most={props.most ?? 40} />;
  if (props.id === undefined) return name;
  return <a href={href({ view: 'functions', query: { sel: props.id } })}>{name}</a>;
}

/** A column of a small table: the first one names the row. */
interface Column<T> {
  header: string;
  title?: string;
  /** Numbers are aligned to the right, which is the default after the first column. */
  left?: true;
  cell: (row: T) => ReactNode;
  cellTitle?: (row: T) => string;
}

/** A table without sorting, for a few rows. */
function SmallTable<T>(props: {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowTitle?: (row: T) => string;
}) {
  const { columns } = props;
  const align = (c: Column<T>, at: number) => (at === 0 || c.left ? undefined : 'right');
  return (
    <PlainTable name={props.caption} title={props.caption}>
      <table className="peers-table">
        <caption>{props.caption}</caption>
        <thead>
          <tr>
            {columns.map((c, at) => (
              <th key={c.header} scope="col" className={align(c, at)} title={c.title}>
                {c.header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, i) => (
            <tr key={i} title={props.rowTitle?.(row)}>
              {columns.map((c, at) =>
                at === 0 ? (
                  <th key={c.header} scope="row">
                    {c.cell(row)}
                  </th>
                ) : (
                  <td key={c.header} className={align(c, at)} title={c.cellTitle?.(row)}>
                    {c.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </PlainTable>
  );
}

const functionColumn = {
  header: 'Function',
  cell: (f: { function: string; function_id?: string }) => (
    <FunctionLink name={f.function} id={f.function_id} />
  ),
};

const calls = (f: { calls: number }) => plural(f.calls, 'call');

const times = (a: number, b: number | null) =>
  b === null || b <= 0 ? unknown : `${(a / b).toFixed(2)}×`;

const share = (part: number) => percent(Number((100 * part).toPrecision(3)));

const ratioTitle = 'Time divided by that of equal work of peers';

/** The functions of a slow place that lost the most time. lost is the time that all of them lost. */
export function SlowFunctions(props: { functions: readonly SlowFunction[]; lost?: number }) {
  const { functions, lost } = props;
  if (functions.length === 0) return null;
  const columns: Column<SlowFunction>[] = [
    functionColumn,
    {
      header: 'mean',
      title: 'Mean time of a call',
      cell: (f) => duration(f.mean_us),
      cellTitle: calls,
    },
    {
      header: 'peers',
      title: 'Mean time of equal calls of peers',
      cell: (f) => duration(f.peers_mean_us),
    },
    { header: 'ratio', title: ratioTitle, cell: (f) => times(f.mean_us, f.peers_mean_us) },
    {
      header: 'lost',
      title: 'Time beyond that of equal work of peers',
      cell: (f) => duration(f.lost_us),
    },
  ];
  if (lost !== undefined) {
    columns.push({
      header: 'of lost',
      title: 'Share of the time that the place lost',
      cell: (f) => share(f.lost_us / Math.max(lost, 1)),
    });
  }
  return (
    <SmallTable
      caption="Functions that take longer than on peers"
      columns={columns}
      rows={functions}
    />
  );
}

/** A slow place and a typical peer side by side. */
export function Sides({ here, twin }: { here: Side; twin: Side }) {
  const all = [here, twin];
  const most = Math.max(...all.map((s) => s.useful_us + s.wait_us), 1);
  const width = (us: number) => `${(100 * us) / most}%`;
  const columns: Column<Side>[] = [
    {
      header: 'Place',
      cell: (s) => (
        <>
          {s.place}
          {s.host !== '' && s.host !== s.place && <span className="muted"> {s.host}</span>}
        </>
      ),
    },
    { header: 'useful', cell: (s) => duration(s.useful_us) },
    { header: 'waiting', cell: (s) => duration(s.wait_us) },
    {
      header: 'Useful, waiting',
      left: true,
      cell: (s) => (
        <span className="side-bar">
          <span className="side-useful" style={{ width: width(s.useful_us) }} />
          <span className="side-waiting" style={{ width: width(s.wait_us) }} />
        </span>
      ),
    },
  ];
  return (
    <SmallTable
      caption="While it was slow, compared with a typical peer"
      columns={columns}
      rows={all}
    />
  );
}

/** The counters of a slow place that differ from those of its peers. */
export function SlowCounters({ counters }: { counters: readonly SlowCounter[] }) {
  if (counters.length === 0) return null;
  const value = (c: SlowCounter, v: number | null) =>
    v === null ? unknown : `${short(v)}${c.rate ? '/s' : ''}`;
  const columns: Column<SlowCounter>[] = [
    { header: 'Counter', cell: (c) => c.counter },
    { header: 'here', title: 'While it was slow', cell: (c) => value(c, c.value) },
    { header: 'peers', title: 'Median of peers meanwhile', cell: (c) => value(c, c.peers_value) },
    {
      header: 'otherwise',
      title: 'Of the place in the rest of the run',
      cell: (c) => value(c, c.past_value),
    },
  ];
  return (
    <SmallTable
      caption="Counters that differ from those of peers"
      columns={columns}
      rows={counters}
      rowTitle={(c) => `${short(c.spreads)} times the spread of peers from their median`}
    />
  );
}

/** The functions of ranks with the most time. */
export function RankFunctionTable({ functions }: { functions: readonly RankFunction[] }) {
  const columns: Column<RankFunction>[] = [
    functionColumn,
    {
      header: 'time',
      title: 'Time of its calls, without callees and waits',
      cell: (f) => duration(f.time_us),
      cellTitle: calls,
    },
    {
      header: 'share',
      title: 'Share of the time of these functions',
      cell: (f) => share(f.share),
    },
    {
      header: 'peers',
      title: 'Time that peers take for equal work',
      cell: (f) => (f.peers_us === null ? unknown : duration(f.peers_us)),
    },
    { header: 'ratio', title: ratioTitle, cell: (f) => times(f.time_us, f.peers_us) },
  ];
  return <SmallTable caption="Functions with the most time" columns={columns} rows={functions} />;
}
