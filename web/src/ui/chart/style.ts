import { token } from '../../color/index.ts';

/** Theme colors for chart options. */
export interface ChartColors {
  theme: 'dark' | 'light';
  ink: string;
  ink2: string;
  ink3: string;
  line: string;
  panel: string;
  raised: string;
  accent: string;
  typical: string;
  typicalBand: string;
  threshold: string;
  selection: string;
}

/** Reads the colors of the current theme. */
export function chartColors(theme: 'dark' | 'light'): ChartColors {
  return {
    theme,
    ink: token('ink'),
    ink2: token('ink-2'),
    ink3: token('ink-3'),
    line: token('line'),
    panel: token('panel'),
    raised: token('raised'),
    accent: token('accent'),
    typical: token('typical'),
    typicalBand: token('typical-band'),
    threshold: token('threshold'),
    selection: token('selection'),
  };
}

/** Style of axes. */
export function axis(c: ChartColors): object {
  return {
    axisLine: { lineStyle: { color: c.line } },
    axisTick: { lineStyle: { color: c.line } },
    axisLabel: { color: c.ink3, fontSize: 11 },
    splitLine: { lineStyle: { color: c.line, opacity: 0.6 } },
    nameTextStyle: { color: c.ink3, fontSize: 11 },
    minorTick: { show: false },
  };
}

/** Style of tooltips; add a formatter that returns tip(…). */
export function tooltip(c: ChartColors): object {
  return {
    confine: true,
    backgroundColor: c.raised,
    borderColor: c.line,
    borderWidth: 1,
    padding: 8,
    textStyle: { color: c.ink, fontSize: 12 },
    transitionDuration: 0,
  };
}

/** Content of a tooltip: a heading and lines of name and value, all as text. */
export function tip(heading: string, lines: readonly (readonly [string, string])[]): HTMLElement {
  const box = document.createElement('div');
  box.className = 'tip';
  const head = document.createElement('div');
  head.className = 'tip-head';
  head.textContent = heading;
  box.append(head);
  for (const [name, value] of lines) {
    const line = document.createElement('div');
    line.className = 'tip-line';
    const n = document.createElement('span');
    n.textContent = name;
    const v = document.createElement('span');
    v.textContent = value;
    line.append(n, v);
    box.append(line);
  }
  return box;
}
