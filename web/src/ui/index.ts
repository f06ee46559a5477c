export {
  Chart,
  axis,
  loadCharts,
  tip,
  tooltip,
  type ChartClick,
  type ChartColors,
  type ChartProps,
} from './chart/index.ts';
export { copyText, saveText, saveURL } from './clipboard.ts';
export { Drawer } from './Drawer.tsx';
export { Empty, ended, Failure, sentence, Waiting } from './Empty.tsx';
export { HelpSheet } from './HelpSheet.tsx';
export { Kind } from './Kind.tsx';
export { Menu } from './Menu.tsx';
export { CallPath, FunctionName, FunctionPlace } from './Name.tsx';
export { Notice } from './Notice.tsx';
export { Segmented } from './Segmented.tsx';
export { endWords, FindingSpark, FindingTime, overTime } from './FindingTime.tsx';
export { Sparkline } from './Sparkline.tsx';
export { Table, type Column, type TableProps } from './table/index.ts';
export { Tile, type Explanation } from './Tile.tsx';
export { When } from './When.tsx';
export { Float } from './Float.tsx';
export { TimeAxis } from './TimeAxis.tsx';
export { useWidth } from './width.ts';
export { cutText, paintOn } from './canvas.ts';
export { Term } from './Term.tsx';
export { isTerm, terms, type TermName } from './terms.ts';
export { ScaleChoice, useAxisScale, type AxisScale } from './AxisScale.tsx';
export { linearTicks, timeStep, timeTicks } from './ticks.ts';
export { ExportFigure } from './export/ExportFigure.tsx';
export { PlainTable } from './export/ExportTable.tsx';
export type { Paper } from './paper.ts';
