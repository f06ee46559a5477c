export { Histogram } from './Histogram.tsx';
export { algorithmWords, flaggedWords, usualWords } from './words.ts';
