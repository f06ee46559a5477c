import { kindVar, kindWords } from '../colour/index.ts';
import './ui.css';

/** A kind of anomaly, with its colour. */
export function Kind(props: { kind: string }) {
  return (
    <span className="kind" title={kindWords[props.kind]}>
      <span className="dot" style={{ background: kindVar(props.kind) }} aria-hidden="true" />
      {props.kind}
    </span>
  );
}
