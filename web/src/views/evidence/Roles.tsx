import { useState } from 'react';
import { useLive, type Evidence, type Other } from '../../api/index.ts';
import { count, duration, plural } from '../../format/index.ts';
import { eventPath, useHref } from '../../route/index.ts';
import { FunctionName, When } from '../../ui/index.ts';

const few = 4;

/** The cause of a wait and the waits it caused; empty if neither exists. */
export function RolesPanel({ evidence: e }: { evidence: Evidence }) {
  const { roles } = e;
  const [all, setAll] = useState(false);
  const href = useHref();
  const hasSentence = (roles.sentence ?? '') !== '';
  if (!roles.culprit && roles.victims.length === 0 && !hasSentence) return null;
  const shown = all ? roles.victims : roles.victims.slice(0, few);
  const waits = roles.waits ?? roles.victims.length;
  return (
    <section className="panel evidence-roles" aria-label="Cause and waits">
      {roles.culprit ? (
        <p>
          <span className="evidence-arrow" aria-hidden="true">
            ←
          </span>
          It waited for <OtherLink other={roles.culprit} />
          <Indirect evidence={e} />
        </p>
      ) : (
        roles.victims.length === 0 && hasSentence && <p>{roles.sentence}.</p>
      )}
      {roles.victims.length > 0 && (
        <>
          <p>
            <span className="evidence-arrow" aria-hidden="true">
              →
            </span>
            <strong>{plural(waits, 'execution')}</strong> waited for it and lost{' '}
            <strong>{duration(roles.waits_lost_us)}</strong>
            {waits > shown.length ? '; the worst:' : ':'}
          </p>
          <ul className="evidence-victims">
            {shown.map((v) => (
              <li key={`${v.program}:${v.event_id}`}>
                <OtherLink other={v} />
              </li>
            ))}
          </ul>
          {roles.victims.length > few && (
            <button type="button" className="button quiet" onClick={() => setAll(!all)}>
              {all ? 'Show fewer' : `Show ${count(roles.victims.length)}`}
            </button>
          )}
        </>
      )}
      {e.finding_key !== undefined && (
        <a
          className="evidence-finding"
          href={href({ view: 'findings', query: { sel: e.finding_key } })}
        >
          finding {e.finding}
        </a>
      )}
    </section>
  );
}

/** The rest of the server's sentence after the culprit. */
function Indirect({ evidence: e }: { evidence: Evidence }) {
  const rest = (e.roles.sentence ?? '').split('; ').slice(1).join('; ');
  return rest === '' ? null : <span className="muted">; {rest}</span>;
}

/** A related execution with a link to its evidence. */
function OtherLink({ other: o }: { other: Other }) {
  const href = useHref();
  const { overview } = useLive();
  const programs = (overview?.programs.length ?? 0) > 1;
  return (
    <span className="evidence-other">
      <a href={href({ event: eventPath(o.program, o.event_id), query: { w: '', call: '' } })}>
        <FunctionName name={o.function} most={44} /> on rank {o.rank}
        {programs && ` of program ${o.program}`}
      </a>
      {o.host !== '' && <span className="muted"> {o.host}</span>}
      <span className="muted">
        {' '}
        <When s={o.at_s} span={1} />, lost {duration(o.lost_us)}
      </span>
    </span>
  );
}
