// Colors of anomaly kinds, function groups and functions. A name always has the same color.

/** Reads a CSS custom property, for canvases. */
export function token(name: string): string {
  return (
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || '#888888'
  );
}

/** The kinds of anomalies in stacking order, then those of findings. */
export const kinds = [
  'slow',
  'comm-wait',
  'gpu',
  'fast',
  'rare',
  'outlier',
  'recurring',
  'change',
  'excess-work',
  'interference',
  'wait',
  'slow-peer',
] as const;

/** Tooltips of the kinds. */
export const kindWords: Readonly<Record<string, string>> = {
  slow: 'took longer than usual',
  fast: 'took less time than usual',
  'comm-wait': 'waited for other ranks or a GPU',
  gpu: 'unusual time on a GPU',
  rare: 'long call of a function that is rarely called there',
  outlier: 'executions took far longer than others like them',
  recurring: 'a share of the calls is slow throughout the run',
  change: 'became slower or faster at some point, or was slower for a while',
  'excess-work': 'did more than usual',
  interference: 'delays hit whatever runs, in proportion to its time',
  wait: 'waited for others',
  'slow-peer': 'is slower than its peers at equal work',
};

function kindToken(kind: string): string {
  return (kinds as readonly string[]).includes(kind) ? kind : 'other';
}

/** The color of a kind as CSS: var(--kind-slow). */
export function kindVar(kind: string): string {
  return `var(--kind-${kindToken(kind)})`;
}

/** The color of a kind in the current theme. */
export function kindColor(kind: string): string {
  return token(`kind-${kindToken(kind)}`);
}

/** The groups of functions. */
export const groups = ['mpi', 'gpu', 'io', 'user'] as const;

export const groupWords: Readonly<Record<string, string>> = {
  mpi: 'MPI',
  gpu: 'GPU',
  io: 'I/O',
  user: 'user code',
};

function groupToken(group: string): string {
  return (groups as readonly string[]).includes(group) ? group : 'user';
}

export function groupVar(group: string): string {
  return `var(--group-${groupToken(group)})`;
}

export function groupColor(group: string): string {
  return token(`group-${groupToken(group)}`);
}

/** A hash of a text, the same in every browser: FNV-1a. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  }
  return h >>> 0;
}

const hues: Readonly<Record<string, number>> = { mpi: 210, gpu: 160, io: 40, user: 320 };

/**
 * The color of a function: a hue near that of its group, with its own lightness. Text on it is black in the dark theme and white in the light one.
 */
export function functionColor(name: string, group: string, theme: 'dark' | 'light'): string {
  const h = hash(name);
  const hue = (hues[groupToken(group)] ?? 320) + ((h % 31) - 15);
  const light = (theme === 'dark' ? 58 : 36) + ((h >>> 8) % 15) - 7;
  const chroma = 38 + ((h >>> 16) % 18);
  return `hsl(${hue} ${chroma}% ${light}%)`;
}

/**
 * The color of a function as a muted background for text in the theme's ink, so that stronger colors stand out.
 */
export function functionFill(name: string, group: string, theme: 'dark' | 'light'): string {
  const h = hash(name);
  const hue = (hues[groupToken(group)] ?? 320) + ((h % 31) - 15);
  const light = (theme === 'dark' ? 33 : 78) + ((h >>> 8) % 9) - 4;
  const chroma = (theme === 'dark' ? 26 : 44) + ((h >>> 16) % 14);
  return `hsl(${hue} ${chroma}% ${light}%)`;
}

/** Colors of ranks or hosts in a plot, by index. */
const series = [
  '#56b4e9',
  '#e69f00',
  '#009e73',
  '#cc79a7',
  '#d55e00',
  '#0072b2',
  '#b0a000',
  '#999999',
];

export function seriesColor(index: number): string {
  return series[index % series.length] ?? '#999999';
}

/** Stops of the heatmap scale, from low to high: like cividis, readable without color vision. */
const ramps = {
  dark: ['#1d2b45', '#2c4a73', '#4f6f86', '#8a8f78', '#c9a94f', '#ffd35c', '#fff3c4'],
  light: ['#e3ebf5', '#bcd0e4', '#8fb0c9', '#8d9a86', '#b3892f', '#a35a12', '#6b1d0a'],
} as const;

/** The heatmap scale as 256 RGB colors. */
export function ramp(theme: 'dark' | 'light'): Uint8ClampedArray {
  return table(ramps[theme]);
}

/** Stops of the scale of ratios: blue is faster, orange slower, the middle equal. */
const ratioRamps = {
  dark: ['#8cc8ff', '#3b7fc0', '#333d4b', '#c46a1c', '#ffc46b'],
  light: ['#0b4f8a', '#7fb2dc', '#e6ebf1', '#e89c4f', '#8f3b00'],
} as const;

/** The scale of ratios as 256 RGB colors, symmetric about the middle. */
export function ratioRamp(theme: 'dark' | 'light'): Uint8ClampedArray {
  return table(ratioRamps[theme]);
}

function table(colors: readonly string[]): Uint8ClampedArray {
  const stops = colors.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
  const out = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    for (let k = 0; k < 3; k++) {
      const a = stops[low]?.[k] ?? 0;
      const b = stops[low + 1]?.[k] ?? 0;
      out[i * 3 + k] = a + (b - a) * (at - low);
    }
  }
  return out;
}
