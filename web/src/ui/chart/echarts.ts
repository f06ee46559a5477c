// The parts of ECharts that the page uses, loaded with the first chart. Add other chart types here.
import { BarChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  GridComponent,
  LegendPlainComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import { init, use as take, type EChartsCoreOption, type EChartsType } from 'echarts/core';
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers';

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
  SVGRenderer,
]);

/** Creates a chart in an element that has a size. */
export function makeChart(box: HTMLElement): EChartsType {
  return init(box, undefined, { renderer: 'canvas' });
}

/** Draws a chart as an SVG document. */
export function chartSVG(option: EChartsCoreOption, width: number, height: number): string {
  const chart = init(null, undefined, { renderer: 'svg', ssr: true, width, height });
  try {
    chart.setOption({ ...option, animation: false });
    return withoutStyles(chart.renderToSVGString());
  } finally {
    chart.dispose();
  }
}

/** Writes styles as attributes: the policy of the page forbids inline styles, also in images. */
export function withoutStyles(svg: string): string {
  return svg
    .replace(/<style[^>]*>.*?<\/style>/gs, '')
    .replace(/ style="([^"]*)"/g, (_, css: string) =>
      css.replace(/([a-z-]+):([^;]*);?/g, ' $1="$2"'),
    );
}
