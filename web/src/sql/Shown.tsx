import type { Result } from './ask.ts';
import { Drawing, Grid } from './Answer.tsx';
import type { Kind } from './chart.ts';

/** A result in the selected form. */
export function Answer(props: {
  result: Result;
  kind: Kind;
  x: string;
  y: string;
  onX: (name: string) => void;
  onY: (name: string) => void;
}) {
  const { kind, ...rest } = props;
  return kind === 'table' ? <Grid result={props.result} /> : <Drawing kind={kind} {...rest} />;
}
