export { Chart, loadCharts, type ChartClick, type ChartProps } from './Chart.tsx';
export { axis, tip, tooltip, type ChartColors } from './style.ts';
