import type { GPUTime } from '../../api/index.ts';
import { percent, unknown } from '../../format/index.ts';

// How the time of GPUs is divided, without side effects.

/** A part of the time of a rank or step. */
export interface Part {
  id: string;
  name: string;
  title: string;
  time: (t: GPUTime) => number;
}

/** The parts in stacking order. They add up to the total. */
export const parts: readonly Part[] = [
  {
    id: 'compute',
    name: 'compute',
    title: 'Kernels compute, and none communicates',
    time: (t) => t.compute_us - t.overlap_us,
  },
  {
    id: 'overlap',
    name: 'compute + communication',
    title: 'Kernels compute and communicate at the same time',
    time: (t) => t.overlap_us,
  },
  {
    id: 'communication',
    name: 'communication',
    title: 'Kernels of NCCL or RCCL run, and none computes',
    time: (t) => t.exposed_communication_us,
  },
  {
    id: 'memory',
    name: 'memory',
    title: 'Memory is copied, and no kernel runs',
    time: (t) => t.exposed_memory_us,
  },
  {
    id: 'host-wait',
    name: 'host wait',
    title: 'Idle: the host launched the next kernel too late',
    time: (t) => t.host_wait_us,
  },
  {
    id: 'kernel-wait',
    name: 'kernel wait',
    title: 'Idle: the next kernel was launched in time, and the gap is shorter than 30 µs',
    time: (t) => t.kernel_wait_us,
  },
  {
    id: 'other-wait',
    name: 'other wait',
    title: 'Idle for another reason, such as a wait for another stream',
    time: (t) => t.other_wait_us,
  },
];

/** The color of a part as CSS. */
export function partVar(id: string): string {
  return `var(--gpu-${id})`;
}

/** A part of a whole in percent; undefined of nothing. */
export function shareOf(part: number, whole: number): number | undefined {
  return whole > 0 ? Number(((100 * part) / whole).toPrecision(6)) : undefined;
}

/** A part of a whole as text. */
export function shareText(part: number, whole: number): string {
  const share = shareOf(part, whole);
  return share === undefined ? unknown : percent(share);
}

/** The orders of ranks. */
export const orders = [
  ['rank', 'Rank', 'In order of ranks'],
  ['compute', 'Compute', 'The least computation first'],
  ['communication', 'Communication', 'The most exposed communication first'],
  ['idle', 'Idle', 'The most idle time first'],
] as const;

export type Order = (typeof orders)[number][0];

/** Rows in an order. */
export function ordered(rows: readonly GPUTime[], by: Order): readonly GPUTime[] {
  if (by === 'rank') return rows;
  const key = (t: GPUTime) => {
    const whole = Math.max(t.total_us, 1e-9);
    if (by === 'compute') return -t.compute_us / whole;
    return (by === 'idle' ? t.idle_us : t.exposed_communication_us) / whole;
  };
  return [...rows].sort((a, b) => key(b) - key(a));
}

/** The key of a rank in the address. */
export function rankKey(t: { program: number; rank: number }): string {
  return `${t.program}:${t.rank}`;
}

/** SVG paths of stacked bars, one for each part, in a box of a width and height. Bars are as long as their share of most, or of their own total without it. */
export function stack(
  rows: readonly GPUTime[],
  width: number,
  height: number,
  most: number | undefined,
): { id: string; path: string }[] {
  const { step, bar } = widths(rows.length, width);
  const tops = new Array<number>(rows.length).fill(height);
  return parts.map(({ id, time }) => {
    let path = '';
    rows.forEach((t, i) => {
      const h = (time(t) / Math.max(most ?? t.total_us, 1e-9)) * height;
      if (h <= 0) return;
      const x = i * step + (step - bar) / 2;
      const top = (tops[i] ?? height) - h;
      path += `M${x.toFixed(2)} ${top.toFixed(2)}h${bar.toFixed(2)}v${h.toFixed(2)}h${(-bar).toFixed(2)}z`;
      tops[i] = top;
    });
    return { id, path };
  });
}

const widest = 72; // pixels of a bar

/** The distance and width of bars in pixels. */
export function widths(n: number, width: number): { step: number; bar: number } {
  const step = width / Math.max(n, 1);
  return { step, bar: Math.min(widest, step > 4 ? step * 0.86 : step) };
}

/** The indexes of bars with a label, so that labels of a width do not overlap. */
export function labeled(n: number, step: number, label: number): number[] {
  const every = Math.max(1, Math.ceil(label / Math.max(step, 1e-9)));
  const round = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000];
  const nice = round.find((r) => r >= every) ?? every;
  return Array.from({ length: Math.ceil(n / nice) }, (_, i) => i * nice);
}
