export { Handover, viewer, type Progress, type Trace } from './handover.ts';
export { useHandover } from './useHandover.ts';
