import type { Model, Range } from '../api/index.ts';
import { count, duration } from '../format/index.ts';
import type { AxisScale } from '../ui/index.ts';

/** Formats a range of times: 2 to 60 µs; at least 3 ms. */
export function rangeWords(r: Range): string {
  if (r.low === undefined) return r.high === undefined ? 'any time' : `up to ${duration(r.high)}`;
  if (r.high === undefined) return `at least ${duration(r.low)}`;
  const [low, high] = [duration(r.low), duration(r.high)];
  const unit = high.slice(high.lastIndexOf(' '));
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low} to ${high}`;
}

/** Formats the times outside a range. */
export function limitWords(r: Range): string {
  const sides = [
    r.low === undefined ? '' : `below ${duration(r.low)}`,
    r.high === undefined ? '' : `above ${duration(r.high)}`,
  ].filter((s) => s !== '');
  return sides.length === 0 ? 'never' : sides.join(' and ');
}

/** Describes the times that a model flags. */
export function flaggedWords(model: Model): string {
  if (model.normal_us.length > 1) return 'outside the usual times';
  return model.threshold_us ? limitWords(model.threshold_us) : 'by rarity';
}

/** Describes the usual times of a model: all modes if few. */
export function usualWords(model: Model): string {
  const modes = model.normal_us;
  if (modes.length > 1 && modes.length <= 3) return modes.map(rangeWords).join(', or ');
  const main = model.typical_us ? rangeWords(model.typical_us) : '–';
  return modes.length > 3 ? `${main}, or one of ${modes.length - 1} other times` : main;
}

/** Describes a histogram for screen readers. */
export function histogramWords(model: Model, value?: number, scale: AxisScale = 'log'): string {
  const axes = scale === 'log' ? 'both axes logarithmic' : 'both axes linear';
  const parts = [`Histogram of ${count(model.samples)} calls, ${axes}`];
  if (model.typical_us) parts.push(`usual ${usualWords(model)}`);
  if (model.threshold_us) parts.push(`flagged ${flaggedWords(model)}`);
  if (value !== undefined) parts.push(`this execution took ${duration(value)}`);
  return `${parts.join('; ')}.`;
}

/** Tooltips of the detectors. */
export const algorithmWords: Readonly<Record<string, string>> = {
  tail: 'flags times beyond the tail that most times predict',
  hbos: 'flags times in rare histogram bins',
  copod: 'flags times in the tails of the distribution',
  sstd: 'flags times several standard deviations from the mean',
  histogram: 'flags rare times in the histogram',
};
