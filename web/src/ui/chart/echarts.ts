// The parts of ECharts that the page uses, in a file of their own: it is loaded
// when the first chart is shown. Who needs another kind of chart adds it here.
import { BarChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  GridComponent,
  LegendPlainComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import { init, use as take, type EChartsType } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';

take([
  BarChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendPlainComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
  CanvasRenderer,
]);

/** Makes a chart in a box that has a size. */
export function makeChart(box: HTMLElement): EChartsType {
  return init(box, undefined, { renderer: 'canvas' });
}
