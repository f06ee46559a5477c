import { useId, type ReactNode } from 'react';
import './ui.css';

/** How a number explains itself. */
export interface Explanation {
  /** What the number is and how it is computed. */
  formula: string;
  /** The numbers behind it. */
  from?: readonly (readonly [string, string])[];
  /** The terminal command that prints the same. */
  command?: string;
}

/** A key figure. Hovering or focusing it shows its explanation. */
export function Tile(props: {
  label: string;
  value: ReactNode;
  note?: ReactNode;
  level?: string;
  explain: Explanation;
}) {
  const id = useId();
  const { explain } = props;
  return (
    <div className={`tile ${props.level ?? ''}`}>
      <button type="button" className="tile-face" aria-describedby={id}>
        <span className="tile-label">{props.label}</span>
        <span className="tile-value">{props.value}</span>
        <span className="tile-note">{props.note}</span>
      </button>
      <div className="tile-explain panel" id={id} role="tooltip">
        <p>{explain.formula}</p>
        {explain.from && (
          <dl>
            {explain.from.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        )}
        {explain.command !== undefined && <code>{explain.command}</code>}
      </div>
    </div>
  );
}
