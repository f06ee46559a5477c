import { useLive, type Finding } from '../api/index.ts';
import { kindVar } from '../color/index.ts';
import { clock, count } from '../format/index.ts';
import { Sparkline } from './Sparkline.tsx';
import { When } from './When.tsx';

/** The end of a finding in words: ended at 5.7 s, or ongoing. */
export function endWords(i: Finding, length: number | undefined): string {
  return i.to_s === null ? 'ongoing' : `ended at ${clock(i.to_s, length)}`;
}

/** The times of a finding; an open end is ongoing. */
export function FindingTime({ finding }: { finding: Finding }) {
  return (
    <>
      <When s={finding.from_s} /> – {finding.to_s === null ? 'ongoing' : <When s={finding.to_s} />}
    </>
  );
}

/** The affected calls in each part of the run so far. A lasting change has no anomalies and affects all calls since it began. */
export function overTime(i: Finding): number[] {
  if (i.over_time.some((n) => n > 0)) return i.over_time;
  const part = i.over_to_s / Math.max(i.over_time.length, 1);
  const end = i.to_s ?? Infinity;
  return i.over_time.map((_, k) =>
    part > 0 && (k + 1) * part > i.from_s && k * part < end ? 1 : 0,
  );
}

/** The affected calls of a finding over the whole run. */
export function FindingSpark(props: { finding: Finding; width: number; height: number }) {
  const { overview } = useLive();
  const i = props.finding;
  const length = overview?.length_s ?? 0;
  return (
    <Sparkline
      values={overTime(i)}
      part={length > 0 ? Math.min(1, i.over_to_s / length) : 1}
      label={`${count(i.calls)} calls over the run, ${endWords(i, overview?.length_s)}`}
      color={kindVar(i.kind)}
      width={props.width}
      height={props.height}
    />
  );
}
