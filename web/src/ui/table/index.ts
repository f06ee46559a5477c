export type { Column, Value } from './column.ts';
export { Table, type TableProps } from './Table.tsx';
