export { RankFunctions } from './RankFunctions.tsx';
export { RatioChart } from './RatioChart.tsx';
export { SlowPeer } from './SlowPeer.tsx';
export { FunctionLink, Sides, SlowCounters, SlowFunctions } from './SlowTables.tsx';
