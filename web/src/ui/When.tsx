import { useLive } from '../api/index.ts';
import { clock, wall } from '../format/index.ts';

/** A time since the start of the run with the time of day as a tooltip. */
export function When(props: { s: number | undefined; span?: number }) {
  const { overview } = useLive();
  const title = wall(overview?.began, props.s);
  return (
    <time className="nowrap" title={title === '' ? undefined : title}>
      {clock(props.s, props.span ?? overview?.length_s)}
    </time>
  );
}
