import type { Figures, PacketsInfo } from '../../api/index.ts';
import { count, duration, plural, short } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';
import { FunctionName, Tile } from '../../ui/index.ts';

/** What packets of statistics tell in numbers. What a store would tell is not there. */
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
            'Anomalies since the begin of the run, as the parameter server counted them on all ranks. No review has looked at them.',
          from: [['calls', count(f.calls)]],
        }}
      />
      <Tile
        label="Time in anomalies"
        value={duration(p.time_in_anomalies_us)}
        note="not what they lost"
        explain={{
          formula:
            'How long all anomalies took together, without what they called. Packets do not hold what is usual of a function, so it is not known how much of it was lost.',
        }}
      />
      <Tile
        label="Functions"
        value={count(f.functions)}
        note={`${count(p.by_function.length)} with most anomalies shown`}
        explain={{ formula: 'Functions of which packets tell.' }}
      />
      <Tile
        label="Ranks"
        value={count(f.ranks)}
        note="with anomalies"
        explain={{
          formula:
            'Ranks of which packets tell: those that had anomalies. Their hosts are not in packets.',
        }}
      />
      <Tile
        label="Packets"
        value={p.total === undefined ? count(p.taken) : `${count(p.taken)} / ${count(p.total)}`}
        note={p.refused > 0 ? `${plural(p.refused, 'other')} made no sense` : 'all made sense'}
        level={p.refused > 0 ? 'watch' : ''}
        explain={{
          formula: p.replay
            ? 'Packets of the directory that have been shown so far.'
            : 'Packets that a parameter server has sent.',
          ...(p.problem === undefined
            ? {}
            : { from: [['the last that made no sense', p.problem]] as const }),
        }}
      />
    </div>
  );
}

/** Functions with most anomalies, and on which ranks. */
export function PacketWorst({ packets: p }: { packets: PacketsInfo }) {
  const href = useHref();
  return (
    <section className="panel top-issues" aria-labelledby="worst-title">
      <header className="panel-head">
        <h2 id="worst-title">Most anomalies</h2>
        <span className="push" />
        <a href={href({ view: 'functions', query: { sort: '-anomalies' } })}>all functions</a>
      </header>
      {p.by_function.length === 0 && <p className="heat-words">No anomalies yet.</p>}
      <ol>
        {p.by_function.map((f) => (
          <li key={`${f.program}:${f.function}`} className="top-issue">
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
              <li key={`${w.program}:${w.rank}:${w.function}`} className="top-issue">
                <span className="top-line">
                  <FunctionName name={w.function} most={34} />
                  <strong className="nowrap">{count(w.anomalies)}</strong>
                </span>
                <span className="top-line small">
                  <span>rank {count(w.rank)}</span>
                  <span title="The longest of them, without what it called">
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
