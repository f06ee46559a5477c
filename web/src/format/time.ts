import { unknown } from './number.ts';

const two = (n: number) => n.toString().padStart(2, '0');

/**
 * Formats a time since the start of the run: 00:14:20. Spans under a minute get fractions: 2.962 s in a short run, 00:14:20.50 in a part of a long one.
 */
export function clock(s: number | undefined, span = Infinity): string {
  if (s === undefined || !Number.isFinite(s)) return unknown;
  const decimals = span < 10 ? 3 : span < 60 ? 2 : 0;
  const unit = 10 ** decimals;
  const units = Math.round(Math.abs(s) * unit);
  const sign = s < 0 && units > 0 ? '−' : '';
  if (span < 60 && units < 60 * unit) return `${sign}${(units / unit).toFixed(decimals)} s`;
  const sec = Math.floor(units / unit);
  const rest = decimals === 0 ? '' : '.' + (units % unit).toString().padStart(decimals, '0');
  return `${sign}${two(Math.floor(sec / 3600))}:${two(Math.floor(sec / 60) % 60)}:${two(sec % 60)}${rest}`;
}

/** The local time of day of a time since the start; empty if the start is unknown. */
export function wall(began: string | undefined, s: number | undefined): string {
  if (!began || s === undefined) return '';
  const ms = Date.parse(began) + s * 1000;
  if (!Number.isFinite(ms)) return '';
  const d = new Date(ms);
  const zone = new Intl.DateTimeFormat('en', { timeZoneName: 'short' })
    .formatToParts(d)
    .find((p) => p.type === 'timeZoneName')?.value;
  const date = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return `${date} ${time}.${d.getMilliseconds().toString().padStart(3, '0')} ${zone ?? ''}`.trim();
}

/** Formats an age coarsely, so that it does not flicker: just now, 12 s ago, 4 min ago. */
export function ago(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 2) return 'just now';
  if (s < 120) return `${s} s ago`;
  if (s < 7200) return `${Math.round(s / 60)} min ago`;
  return `${Math.round(s / 3600)} h ago`;
}
