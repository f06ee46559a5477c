import { unknown } from './number.ts';

const units: readonly [number, string][] = [
  [1e6, 's'],
  [1e3, 'ms'],
  [1, 'µs'],
];

/** Three significant digits, at most: 4.71, 47.1, 471. */
function three(n: number): string {
  return n >= 99.95 ? n.toFixed(0) : n >= 9.995 ? n.toFixed(1) : n.toFixed(2);
}

/** Formats a duration in microseconds with a suitable unit: 471 µs, 4.71 ms, 12.3 s, 4 min 05 s, 3 h 12 min. */
export function duration(us: number | undefined): string {
  if (us === undefined || !Number.isFinite(us)) return unknown;
  const sign = us < 0 ? '−' : '';
  const size = Math.abs(us);
  if (size === 0) return '0 µs';
  if (size < 1) return `${sign}${(size * 1000).toFixed(0)} ns`;
  if (size >= 119.5e6) return sign + long(Math.round(size / 1e6));
  const [unit, name] = units.find(([unit]) => size >= unit * 0.9995) ?? [1, 'µs'];
  const text = Number.isInteger(size) && unit === 1 ? size.toFixed(0) : three(size / unit);
  return `${sign}${text} ${name}`;
}

function long(s: number): string {
  const two = (n: number) => n.toString().padStart(2, '0');
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 100 * 3600) return `${Math.floor(s / 3600)} h ${two(Math.floor((s % 3600) / 60))} min`;
  return `${Math.round(s / 3600)} h`;
}

/** Formats a duration for an axis without trailing zeros: 1 ms, 2.5 s. */
export function durationTick(us: number): string {
  return duration(us)
    .replace(/(\.\d*?)0+ /, '$1 ')
    .replace('. ', ' ');
}

/** Formats a duration in seconds. */
export function seconds(s: number | undefined): string {
  return s === undefined ? unknown : s === 0 ? '0 s' : duration(s * 1e6);
}

/** Formats core hours: 612 core-h, 0.004 core-h. */
export function coreHours(h: number | undefined): string {
  if (h === undefined || !Number.isFinite(h)) return unknown;
  if (h === 0) return '0 core-h';
  if (h < 0.001) return `${duration(h * 3.6e9)} core time`;
  const text =
    h >= 100 ? h.toFixed(0) : h >= 10 ? h.toFixed(1) : h >= 1 ? h.toFixed(2) : h.toPrecision(2);
  return `${text} core-h`;
}
