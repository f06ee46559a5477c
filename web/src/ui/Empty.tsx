import type { ReactNode } from 'react';
import type { Problem } from '../api/index.ts';
import './ui.css';

/** A placeholder with the reason for missing content and a remedy. */
export function Empty(props: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{props.title}</p>
      {props.children !== undefined && <div className="empty-text">{props.children}</div>}
      {props.action}
    </div>
  );
}

/** A failed request: the error, its hint and a retry button. */
export function Failure(props: { problem: Problem; retry?: () => void }) {
  const { problem } = props;
  return (
    <div role="alert">
      <Empty
        title={sentence(problem.message)}
        action={
          props.retry && (
            <button type="button" className="button" onClick={props.retry}>
              Try again
            </button>
          )
        }
      >
        {problem.hint !== '' && <p>{sentence(problem.hint)}</p>}
      </Empty>
    </div>
  );
}

/** Adds a missing full stop. Keeps the first letter, which may belong to a function name. */
export function ended(text: string): string {
  const t = text.trim();
  return t === '' || /[.!?…]$/.test(t) ? t : `${t}.`;
}

/** Capitalizes an error message and adds a full stop. */
export function sentence(text: string): string {
  const t = ended(text);
  return t.charAt(0).toUpperCase() + t.slice(1);
}

/** Gray bars while content loads. */
export function Waiting(props: { label: string; lines?: number }) {
  return (
    <div className="waiting" role="status" aria-label={props.label}>
      {Array.from({ length: props.lines ?? 3 }, (_, i) => (
        <div key={i} className="waiting-line" />
      ))}
    </div>
  );
}
