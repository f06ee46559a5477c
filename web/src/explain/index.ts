export { BoxSelect } from './BoxSelect.tsx';
export { LassoSelect } from './LassoSelect.tsx';
export { closeExplain, ExplainDrawer, Explanation } from './ExplainDrawer.tsx';
export { readSelection, selectionOf, writeSelection, type Selection } from './selection.ts';
