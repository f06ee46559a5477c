import type { EChartsCoreOption, EChartsType } from 'echarts/core';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { useTheme } from '../../theme/index.ts';
import { exportAs } from '../paper.ts';
import { chartColors, type ChartColors } from './style.ts';
import './chart.css';

/** A click on a value: its series and its index in the data. */
export interface ChartClick {
  seriesIndex: number;
  dataIndex: number;
  data: unknown;
}

export interface ChartProps {
  /** A sentence that describes the chart to screen readers. */
  label: string;
  /**
   * Builds the option. It must be a stable function while the data stay the same; a theme change calls it again. Build tooltips with tip(): names come from traces and must not become markup.
   */
  option: (colors: ChartColors) => EChartsCoreOption;
  /** In pixels; fill takes the height of the enclosing box. */
  height: number | 'fill';
  onClick?: (click: ChartClick) => void;
  /** The same data as a table or sentence for screen readers. */
  alternative?: ReactNode;
}

/** Loads ECharts. */
export function loadCharts(): Promise<typeof import('./echarts.ts')> {
  return import('./echarts.ts');
}

/**
 * An ECharts chart. The first one loads the library. New data are merged into the existing chart.
 */
export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType>(undefined);
  const click = useRef(props.onClick);
  const [ready, setReady] = useState(false);
  const [failed, setFailed] = useState(false);
  const theme = useTheme();
  const { option } = props;
  const newest = useRef(() => option(chartColors(theme)));
  useEffect(() => {
    click.current = props.onClick;
    newest.current = () => option(chartColors(theme));
  });
  useEffect(() => {
    let gone = false;
    let sizes: ResizeObserver | undefined;
    loadCharts().then(
      ({ makeChart, chartSVG }) => {
        if (gone || !box.current) return;
        const made = makeChart(box.current);
        chart.current = made;
        exportAs(box.current, (width, height) => chartSVG(newest.current(), width, height));
        made.on('click', (event) => {
          click.current?.({
            seriesIndex: event.seriesIndex ?? 0,
            dataIndex: event.dataIndex,
            data: event.data,
          });
        });
        sizes = new ResizeObserver(() => made.resize());
        sizes.observe(box.current);
        setReady(true);
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      sizes?.disconnect();
      chart.current?.dispose();
      chart.current = undefined;
    };
  }, []);
  useEffect(() => {
    if (!ready) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    chart.current?.setOption(
      { animation: false, ...option(chartColors(theme)), ...(still ? { animation: false } : {}) },
      { replaceMerge: ['series', 'xAxis', 'yAxis'], lazyUpdate: !matchMedia('print').matches },
    );
  }, [ready, option, theme]);
  return (
    <figure className={props.height === 'fill' ? 'chart fill' : 'chart'}>
      {failed && <p className="muted">Cannot load the charts. Reload the page.</p>}
      <div
        ref={box}
        role="img"
        aria-label={props.label}
        style={{ height: props.height === 'fill' ? '100%' : props.height }}
      />
      {props.alternative !== undefined && (
        <div className="visually-hidden">{props.alternative}</div>
      )}
    </figure>
  );
}
