export * from './duration.ts';
export * from './markdown.ts';
export * from './name.ts';
export * from './number.ts';
export * from './rank.ts';
export * from './status.ts';
export * from './text.ts';
export * from './time.ts';
