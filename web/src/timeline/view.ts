// The visible time span in microseconds since the entry of the execution. This file has no side effects.

/** A time span in microseconds. */
export interface Span {
  from: number;
  to: number;
}

/** The shortest span: times are integer microseconds. */
export const shortest = 2;

/** Clamps a span to the bounds and the minimum length. */
export function clampSpan(span: Span, bounds: Span): Span {
  const whole = Math.max(bounds.to - bounds.from, shortest);
  const size = Math.min(Math.max(span.to - span.from, shortest), whole);
  const middle = (span.from + span.to) / 2;
  const from = Math.min(Math.max(middle - size / 2, bounds.from), bounds.from + whole - size);
  return { from, to: from + size };
}

/** Zooms in (factor below 1) or out, keeping the time `at` in place. */
export function zoom(span: Span, factor: number, at: number, bounds: Span): Span {
  const whole = Math.max(bounds.to - bounds.from, shortest);
  const size = span.to - span.from;
  const next = Math.min(Math.max(size * factor, shortest), whole);
  const part = size > 0 ? (at - span.from) / size : 0.5;
  const from = at - part * next;
  return clampSpan({ from, to: from + next }, bounds);
}

/** Moves a span by a fraction of its length: 0.2 is a fifth to the right. */
export function pan(span: Span, part: number, bounds: Span): Span {
  const by = (span.to - span.from) * part;
  return clampSpan({ from: span.from + by, to: span.to + by }, bounds);
}

/** A span from one time to another plus margins. */
export function fit(from: number, to: number, bounds: Span, room = 0.06): Span {
  const size = Math.max(to - from, shortest);
  return clampSpan({ from: from - size * room, to: to + size * room }, bounds);
}

/** Reports whether two spans look the same. */
export function sameSpan(a: Span, b: Span): boolean {
  const least = Math.max(b.to - b.from, shortest) / 2000;
  return Math.abs(a.from - b.from) < least && Math.abs(a.to - b.to) < least;
}

/** The x position of a time in pixels. */
export function toX(time: number, span: Span, width: number): number {
  return ((time - span.from) / (span.to - span.from)) * width;
}

/** The time at a pixel. */
export function toTime(x: number, span: Span, width: number): number {
  return span.from + (width > 0 ? x / width : 0) * (span.to - span.from);
}

const units: readonly (readonly [number, string])[] = [
  [1e6, 's'],
  [1e3, 'ms'],
  [1, 'µs'],
];

/** Round tick times with labels in a common unit, at most `most`. */
export function axisTicks(span: Span, most: number): { at: number; label: string }[] {
  const size = span.to - span.from;
  if (!(size > 0) || most < 1) return [];
  const rough = size / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, power * ([1, 2, 5, 10].find((m) => m * power >= rough * 0.9999) ?? 10));
  const [unit, name] = units.find(([u]) => step >= u) ?? [1, 'µs'];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  const ticks: { at: number; label: string }[] = [];
  for (let i = Math.ceil(span.from / step - 1e-9); i * step <= span.to + step * 1e-9; i++) {
    ticks.push({ at: i * step, label: relative(i * step, unit, name, decimals) });
  }
  return ticks;
}

function relative(at: number, unit: number, name: string, decimals: number): string {
  if (at === 0) return `0 ${name}`;
  return `${at < 0 ? '−' : '+'}${(Math.abs(at) / unit).toFixed(decimals)} ${name}`;
}

/** Encodes a span for the address. */
export function writeSpan(span: Span): string {
  const size = span.to - span.from;
  const digits = size < 100 ? 1 : 0;
  return `${span.from.toFixed(digits)},${span.to.toFixed(digits)}`;
}

/** Decodes a span; undefined if malformed. */
export function readSpan(text: string): Span | undefined {
  const [from, to, rest] = text.split(',').map((t) => (t.trim() === '' ? NaN : Number(t)));
  if (from === undefined || to === undefined || rest !== undefined) return undefined;
  return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : undefined;
}
