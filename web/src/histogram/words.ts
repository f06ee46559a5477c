import type { Model, Range } from '../api/index.ts';
import { count, duration } from '../format/index.ts';

/** A range of times in words: 2 to 60 µs; at least 3 ms. */
export function rangeWords(r: Range): string {
  if (r.low === undefined) return r.high === undefined ? 'any time' : `up to ${duration(r.high)}`;
  if (r.high === undefined) return `at least ${duration(r.low)}`;
  const [low, high] = [duration(r.low), duration(r.high)];
  const unit = high.slice(high.lastIndexOf(' '));
  return `${low.endsWith(unit) ? low.slice(0, -unit.length) : low} to ${high}`;
}

/** Outside of what a time is flagged. */
export function limitWords(r: Range): string {
  const sides = [
    r.low === undefined ? '' : `below ${duration(r.low)}`,
    r.high === undefined ? '' : `above ${duration(r.high)}`,
  ].filter((s) => s !== '');
  return sides.length === 0 ? 'never' : sides.join(' and ');
}

/** What a model flags, in words. */
export function flaggedWords(model: Model): string {
  if (model.normal_us.length > 1) return 'outside of the usual times';
  return model.threshold_us ? limitWords(model.threshold_us) : 'by its rarity';
}

/** What is usual by a model: all modes, where they are few. */
export function usualWords(model: Model): string {
  const modes = model.normal_us;
  if (modes.length > 1 && modes.length <= 3) return modes.map(rangeWords).join(', or ');
  const main = model.typical_us ? rangeWords(model.typical_us) : '–';
  return modes.length > 3 ? `${main}, or one of ${modes.length - 1} other times` : main;
}

/** The histogram in a sentence, for those who cannot see it. */
export function histogramWords(model: Model, value?: number): string {
  const parts = [`Histogram of ${count(model.samples)} calls, both axes logarithmic`];
  if (model.typical_us) parts.push(`usual are ${usualWords(model)}`);
  if (model.threshold_us) parts.push(`flagged is what is ${flaggedWords(model)}`);
  if (value !== undefined) parts.push(`this one took ${duration(value)}`);
  return `${parts.join('; ')}.`;
}

/** What the detectors are. */
export const algorithmWords: Readonly<Record<string, string>> = {
  modal: 'finds the usual times, which may be several, and flags what is far from all of them',
  hbos: 'flags times whose bin of the histogram is rare',
  copod: 'flags times in the tails of the distribution',
  sstd: 'flags times that are some standard deviations from the mean',
  histogram: 'flags times that are rare in the histogram',
};
