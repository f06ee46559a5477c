import type { Level, Notice as About } from '../../api/index.ts';
import { plural } from '../../format/index.ts';
import { Notice, ended } from '../../ui/index.ts';

/** Whether data is missing or late; results of the review are remarks. */
const isProblem = (n: About) => (n.level === 'bad' || n.level === 'watch') && n.topic !== 'review';

/** What limits the reliability of the page: one line, which expands if there are several. */
export function Notices({ notices }: { notices: readonly About[] }) {
  const [worst, ...others] = notices;
  if (!worst) return null;
  if (others.length === 0) return <One notice={worst} />;
  const problems = notices.filter(isProblem).length;
  const remarks = notices.length - problems;
  const level: Level = worst.level === 'good' ? 'unknown' : worst.level;
  const words = [
    ...(problems > 0 ? [plural(problems, 'data problem')] : []),
    ...(remarks > 0 ? [plural(remarks, 'remark')] : []),
  ].join(', ');
  return (
    <details className="notices folded">
      <summary className={`notice ${level}`}>
        <strong className="nowrap">{words}</strong>
        <span className="notice-text cut">{ended(worst.sentence)}</span>
      </summary>
      <div className="notices">
        {notices.map((n) => (
          <One key={n.topic + n.sentence} notice={n} />
        ))}
      </div>
    </details>
  );
}

function One({ notice }: { notice: About }) {
  return <Notice level={notice.level}>{ended(notice.sentence)}</Notice>;
}
