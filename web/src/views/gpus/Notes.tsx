import type { Tally } from '../../api/index.ts';
import { count } from '../../format/index.ts';

/** What is missing, or less exact than it looks. */
export function Notes({ list }: { list: readonly Tally[] }) {
  if (list.length === 0) return null;
  return (
    <ul className="gpu-notes">
      {list.map((n) => (
        <li key={n.name} className={n.severity === 'data loss' ? 'is-bad' : ''}>
          <span className="state">{n.severity}</span> {count(n.count)} {n.sentence}
        </li>
      ))}
    </ul>
  );
}
