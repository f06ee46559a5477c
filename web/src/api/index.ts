export * from './client.ts';
export * from './query.ts';
export * from './session.ts';
export type * from './types.gen.ts';
