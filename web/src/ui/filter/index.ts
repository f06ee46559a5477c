export { FilterField } from './FilterField.tsx';
export { matcher } from './parse.ts';
