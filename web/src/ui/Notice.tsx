import type { ReactNode } from 'react';
import type { Level } from '../api/index.ts';
import './ui.css';

const marks: Readonly<Record<Level, string>> = { good: '✓', unknown: 'i', watch: '!', bad: '!' };

/** A message with a mark and a color for its level. */
export function Notice(props: { level: Level; children: ReactNode; action?: ReactNode }) {
  return (
    <div className={`notice ${props.level}`} role={props.level === 'bad' ? 'alert' : 'status'}>
      <span className="notice-mark" aria-hidden="true">
        {marks[props.level]}
      </span>
      <span className="notice-text">{props.children}</span>
      {props.action}
    </div>
  );
}
