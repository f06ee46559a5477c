export { nothing } from './open.ts';
