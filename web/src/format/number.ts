// Number formats. Every function returns a dash for undefined, so that no view shows NaN or "undefined".

/** Text for an unknown value. */
export const unknown = '–';

const thin = '\u202f'; // narrow no-break space, between groups of three digits

/** A whole number with groups of three: 1 240 377. */
export function count(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return unknown;
  const digits = Math.abs(Math.round(n)).toString();
  const grouped = digits.length < 5 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, thin);
  return (n <= -0.5 ? '−' : '') + grouped;
}

const prefixes: readonly [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** Three significant digits of a non-negative number; integers in full. */
function digits(n: number): string {
  if (Number.isInteger(n)) return n.toFixed(0);
  return n >= 99.95 ? n.toFixed(0) : n >= 9.995 ? n.toFixed(1) : n.toFixed(2);
}

/** A number with an SI prefix: 950, 1.24 k, 41.2 M. */
export function short(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return unknown;
  const size = Math.abs(n);
  const sign = n < 0 ? '−' : '';
  for (const [unit, prefix] of prefixes) {
    if (size >= unit * 0.9995) return `${sign}${digits(size / unit)} ${prefix}`;
  }
  return sign + digits(size);
}

/** A rate: 98.2 k/s. */
export function rate(n: number | undefined): string {
  return n === undefined ? unknown : `${short(n)}/s`;
}

/** Bytes, in powers of 1000 as disks and networks count: 18.9 kB. */
export function bytes(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return unknown;
  const text = short(n);
  return /[kMGT]$/.test(text) ? `${text}B` : `${text} B`;
}

/** Formats a number in percent: 4.1 %. */
export function percent(n: number | undefined): string {
  if (n === undefined || !Number.isFinite(n)) return unknown;
  if (n > 0 && n < 0.01) return '< 0.01 %';
  return `${n < 0 ? '−' : ''}${digits(Math.abs(n))} %`;
}

/** A factor: 132×. */
export function factor(n: number | undefined): string {
  return n === undefined ? unknown : `${short(n)}×`;
}

/** "1 anomaly", "24 anomalies". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${Math.round(n) === 1 ? one : many}`;
}
