import type { Finding } from '../../api/index.ts';
import { percent } from '../../format/index.ts';
import { useHref } from '../../route/index.ts';

/** The costliest notes about normal behavior in a line each, with links to their details. */
export function Notes({ notes }: { notes: readonly Finding[] }) {
  const href = useHref();
  if (notes.length === 0) return null;
  return (
    <section className="panel notes" aria-labelledby="notes-title">
      <header className="panel-head">
        <h2 id="notes-title">Normal behavior</h2>
      </header>
      <ul>
        {notes.map((i) => (
          <li key={i.key}>
            <a href={href({ view: 'findings', query: { sel: i.key, minor: '1' } })}>{i.summary}</a>:{' '}
            <span className="nowrap">{percent(100 * i.share)} of the time</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
