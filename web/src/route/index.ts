export * from './hash.ts';
export * from './hooks.ts';
