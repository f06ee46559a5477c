export { FlameGraph, share } from './FlameGraph.tsx';
export { cellsOf, search, sums, type Cell, type Sum } from './layout.ts';
