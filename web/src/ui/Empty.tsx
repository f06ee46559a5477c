import type { ReactNode } from 'react';
import type { Problem } from '../api/index.ts';
import './ui.css';

/** What is shown instead of content: why there is none, and what to do. */
export function Empty(props: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{props.title}</p>
      {props.children !== undefined && <div className="empty-text">{props.children}</div>}
      {props.action}
    </div>
  );
}

/** An answer that could not be had: the server's sentence, its hint, and another try. */
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

/** A sentence with a full stop. Its begin stays: it may be the name of a function. */
export function ended(text: string): string {
  const t = text.trim();
  return t === '' || /[.!?…]$/.test(t) ? t : `${t}.`;
}

/** An error as people write sentences: with a capital and a full stop. */
export function sentence(text: string): string {
  const t = ended(text);
  return t.charAt(0).toUpperCase() + t.slice(1);
}

/** Gray bars in place of what is still awaited. */
export function Waiting(props: { label: string; lines?: number }) {
  return (
    <div className="waiting" role="status" aria-label={props.label}>
      {Array.from({ length: props.lines ?? 3 }, (_, i) => (
        <div key={i} className="waiting-line" />
      ))}
    </div>
  );
}
