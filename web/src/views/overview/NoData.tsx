import type { Overview } from '../../api/index.ts';
import { count } from '../../format/index.ts';
import { Empty } from '../../ui/index.ts';

/** Instructions before the first data: commands to connect, ranks seen, and the ssh tunnel. */
export function NoData({ overview }: { overview: Overview }) {
  const f = overview.figures;
  const { hostname, port } = location;
  const local = port === '' ? '8080' : port;
  const here = /^(localhost|127\.|\[)/.test(hostname); // the page is on the login machine
  const tunnel = here
    ? `ssh -L ${local}:localhost:${local} user@this-machine`
    : `ssh -L ${local}:${hostname}:${local} user@login`;
  const commands = [
    ['services, once', `chimbuko serve --out ${overview.run}`],
    ['one analyzer per node', `chimbuko ad --run-dir ${overview.run} 'tau-metrics-*.bp'`],
    ['status in a terminal', `chimbuko status ${overview.run}`],
  ] as const;
  return (
    <Empty title={overview.live ? 'Waiting for analyzers' : 'This run has no data'}>
      <p className="ranks-seen" aria-live="polite">
        {count(f.ranks)}
        {f.ranks_expected === undefined ? '' : `/${count(f.ranks_expected)}`} ranks seen
      </p>
      <dl className="commands">
        {commands.map(([what, line]) => (
          <div key={line}>
            <dt>{what}</dt>
            <dd>
              <code>{line}</code>
            </dd>
          </div>
        ))}
        <div>
          <dt>this page from another machine</dt>
          <dd>
            <code>{tunnel}</code>
          </dd>
        </div>
      </dl>
    </Empty>
  );
}
