import type { Figures, PacketsInfo } from '../../api/index.ts';
import { count, duration, short } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { FunctionName, Tile } from '../../ui/index.ts';

/** Key figures from statistics packets, which lack what only a store has. */
export function PacketTiles({
  figures: f,
  packets: p,
}: {
  figures: Figures;
  packets: PacketsInfo;
}) {
  return (
    <div className="tiles">
      <Tile
        label="Anomalies"
        value={short(f.anomalies)}
        note={`${short(f.anomalies_per_hour)}/h · provisional`}
        explain={{
          formula:
            'Anomalies since the start of the run on all ranks, as counted by the parameter server. Not reviewed.',
          from: [['calls', count(f.calls)]],
        }}
      />
      <Tile
        label="Anomaly time"
        value={duration(p.time_in_anomalies_us)}
        note="total, not lost time"
        explain={{
          formula:
            'Own time of all anomalies, without callees. Packets do not contain the usual time of a function, so the lost time is unknown.',
        }}
      />
      <Tile
        label="Functions"
        value={count(f.functions)}
        note={`${count(p.by_function.length)} shown, by anomalies`}
        explain={{ formula: 'Functions in the packets.' }}
      />
      <Tile
        label="Ranks"
        value={count(f.ranks)}
        note="with anomalies"
        explain={{
          formula: 'Ranks with anomalies. Packets do not contain host names.',
        }}
      />
      <Tile
        label="Packets"
        value={p.total === undefined ? count(p.taken) : `${count(p.taken)} / ${count(p.total)}`}
        note={p.refused > 0 ? `${count(p.refused)} invalid` : 'none invalid'}
        level={p.refused > 0 ? 'watch' : ''}
        explain={{
          formula: p.replay
            ? 'Packets replayed from the directory so far.'
            : 'Packets received from a parameter server.',
          ...(p.problem === undefined
            ? {}
            : { from: [['last invalid packet', p.problem]] as const }),
        }}
      />
    </div>
  );
}

/** The functions and ranks with the most anomalies. */
export function PacketWorst({ packets: p }: { packets: PacketsInfo }) {
  const href = useHref();
  return (
    <section className="panel top-findings" aria-labelledby="worst-title">
      <header className="panel-head">
        <h2 id="worst-title">Most anomalies</h2>
        <span className="push" />
        <a href={href({ view: 'functions', query: { sort: '-anomalies' } })}>all functions</a>
      </header>
      {p.by_function.length === 0 && <p className="heat-words">No anomalies yet.</p>}
      <ol>
        {p.by_function.map((f) => (
          <li key={`${f.program}:${f.function}`} className="top-finding">
            <span className="top-line">
              <FunctionName name={f.function} most={34} />
              <strong className="nowrap">{count(f.anomalies)}</strong>
            </span>
            <span className="top-line small">of {count(f.calls)} calls</span>
          </li>
        ))}
      </ol>
      {p.worst.length > 0 && (
        <>
          <h3 className="panel-head">On one rank</h3>
          <ol>
            {p.worst.map((w) => (
              <li key={`${w.program}:${w.rank}:${w.function}`} className="top-finding">
                <span className="top-line">
                  <FunctionName name={w.function} most={34} />
                  <strong className="nowrap">{count(w.anomalies)}</strong>
                </span>
                <span className="top-line small">
                  <span>rank {count(w.rank)}</span>
                  <span title="Longest anomaly, without callees">
                    longest {duration(w.longest_us)}
                  </span>
                </span>
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
}
