import { kindVar, kindWords } from '../color/index.ts';
import './ui.css';

/** A kind of anomaly, with its color. */
export function Kind(props: { kind: string }) {
  return (
    <span className="kind" title={kindWords[props.kind]}>
      <span className="dot" style={{ background: kindVar(props.kind) }} aria-hidden="true" />
      {props.kind}
    </span>
  );
}
