export { boxKey, boxOf, ownTime } from './find.ts';
export { boundsOf, firstSpan, layout, type Box, type Layout, type Section } from './layout.ts';
export { Timeline, type TimelineProps } from './Timeline.tsx';
export { clampSpan, fit, pan, readSpan, sameSpan, writeSpan, zoom, type Span } from './view.ts';
export { after, selfWords } from './words.ts';
