// The parts of ECharts that the page uses, loaded with the first chart. Add other chart types here.
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

/** Creates a chart in an element that has a size. */
export function makeChart(box: HTMLElement): EChartsType {
  return init(box, undefined, { renderer: 'canvas' });
}
