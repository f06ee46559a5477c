import type { RankFunction, Side, SlowCounter, SlowFunction } from '../api/index.ts';
import { duration, percent, plural, short, unknown } from '../format/index.ts';
import { useHref } from '../route/index.ts';
import { FunctionName } from '../ui/index.ts';
import './peers.css';

/** A function with a link to its details, if it has any. */
export function FunctionLink(props: { name: string; id: string | undefined; most?: number }) {
  const href = useHref();
  const name = <FunctionName name={props.name} most={props.most ?? 40} />;
  if (props.id === undefined) return name;
  return <a href={href({ view: 'functions', query: { sel: props.id } })}>{name}</a>;
}

/** The functions of a slow place that lost the most time. lost is the time that all of them lost. */
export function SlowFunctions(props: { functions: readonly SlowFunction[]; lost?: number }) {
  const { functions, lost } = props;
  if (functions.length === 0) return null;
  return (
    <table className="peers-table">
      <caption>Functions that take longer than on peers</caption>
      <thead>
        <tr>
          <th scope="col">Function</th>
          <th scope="col" className="right" title="Mean time of a call">
            mean
          </th>
          <th scope="col" className="right" title="Mean time of equal calls of peers">
            peers
          </th>
          <th scope="col" className="right" title="Time divided by that of equal work of peers">
            ratio
          </th>
          <th scope="col" className="right" title="Time beyond that of equal work of peers">
            lost
          </th>
          {lost !== undefined && (
            <th scope="col" className="right" title="Share of the time that the place lost">
              of lost
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {functions.map((f, i) => (
          <tr key={i}>
            <th scope="row">
              <FunctionLink name={f.function} id={f.function_id} />
            </th>
            <td className="right" title={plural(f.calls, 'call')}>
              {duration(f.mean_us)}
            </td>
            <td className="right">{duration(f.peers_mean_us)}</td>
            <td className="right">
              {f.peers_mean_us > 0 ? `${(f.mean_us / f.peers_mean_us).toFixed(2)}×` : unknown}
            </td>
            <td className="right">{duration(f.lost_us)}</td>
            {lost !== undefined && (
              <td className="right">
                {percent(Number(((100 * f.lost_us) / Math.max(lost, 1)).toPrecision(3)))}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A slow place and a typical peer side by side. */
export function Sides({ here, twin }: { here: Side; twin: Side }) {
  const all = [here, twin];
  const most = Math.max(...all.map((s) => s.useful_us + s.wait_us), 1);
  const width = (us: number) => `${(100 * us) / most}%`;
  return (
    <table className="peers-table">
      <caption>While it was slow, compared with a typical peer</caption>
      <thead>
        <tr>
          <th scope="col">Place</th>
          <th scope="col" className="right">
            useful
          </th>
          <th scope="col" className="right">
            waiting
          </th>
          <th scope="col">Useful, waiting</th>
        </tr>
      </thead>
      <tbody>
        {all.map((s) => (
          <tr key={s.place}>
            <th scope="row">
              {s.place}
              {s.host !== '' && s.host !== s.place && <span className="muted"> {s.host}</span>}
            </th>
            <td className="right">{duration(s.useful_us)}</td>
            <td className="right">{duration(s.wait_us)}</td>
            <td>
              <span className="side-bar">
                <span className="side-useful" style={{ width: width(s.useful_us) }} />
                <span className="side-waiting" style={{ width: width(s.wait_us) }} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The counters of a slow place that differ from those of its peers. */
export function SlowCounters({ counters }: { counters: readonly SlowCounter[] }) {
  if (counters.length === 0) return null;
  const value = (c: SlowCounter, v: number | null) =>
    v === null ? unknown : `${short(v)}${c.rate ? '/s' : ''}`;
  return (
    <table className="peers-table">
      <caption>Counters that differ from those of peers</caption>
      <thead>
        <tr>
          <th scope="col">Counter</th>
          <th scope="col" className="right" title="While it was slow">
            here
          </th>
          <th scope="col" className="right" title="Median of peers meanwhile">
            peers
          </th>
          <th scope="col" className="right" title="Of the place in the rest of the run">
            otherwise
          </th>
        </tr>
      </thead>
      <tbody>
        {counters.map((c) => (
          <tr
            key={c.counter}
            title={`${short(c.spreads)} times the spread of peers from their median`}
          >
            <th scope="row">{c.counter}</th>
            <td className="right">{value(c, c.value)}</td>
            <td className="right">{value(c, c.peers_value)}</td>
            <td className="right">{value(c, c.past_value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The functions of ranks with the most time. */
export function RankFunctionTable({ functions }: { functions: readonly RankFunction[] }) {
  return (
    <table className="peers-table">
      <caption>Functions with the most time</caption>
      <thead>
        <tr>
          <th scope="col">Function</th>
          <th scope="col" className="right" title="Time of its calls, without callees and waits">
            time
          </th>
          <th scope="col" className="right" title="Share of the time of these functions">
            share
          </th>
          <th scope="col" className="right" title="Time that peers take for equal work">
            peers
          </th>
          <th scope="col" className="right" title="Time divided by that of equal work of peers">
            ratio
          </th>
        </tr>
      </thead>
      <tbody>
        {functions.map((f) => (
          <tr key={f.function}>
            <th scope="row">
              <FunctionLink name={f.function} id={f.function_id} />
            </th>
            <td className="right" title={plural(f.calls, 'call')}>
              {duration(f.time_us)}
            </td>
            <td className="right">{percent(Number((100 * f.share).toPrecision(3)))}</td>
            <td className="right">{f.peers_us === null ? unknown : duration(f.peers_us)}</td>
            <td className="right">
              {f.peers_us === null || f.peers_us <= 0
                ? unknown
                : `${(f.time_us / f.peers_us).toFixed(2)}×`}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
