import type { Paper, Places } from '../paper.ts';
import { canvasSVG } from './cells.ts';
import { escape, px, tag, type Attributes } from './xml.ts';

interface State {
  fillStyle: Paper['fillStyle'];
  strokeStyle: Paper['strokeStyle'];
  lineWidth: number;
  globalAlpha: number;
  font: string;
  dash: string;
  dx: number;
  dy: number;
  clip: string | undefined;
}

let clips = 0; // clip paths of all documents, for names that differ within each

/** Records strokes of a canvas as SVG. */
export class SVGPaper implements Paper {
  fillStyle: Paper['fillStyle'] = '#000';
  strokeStyle: Paper['strokeStyle'] = '#000';
  lineWidth = 1;
  globalAlpha = 1;
  font = '10px sans-serif';
  textBaseline: CanvasTextBaseline = 'alphabetic';
  imageSmoothingEnabled = false;
  private dash = '';
  private dx = 0;
  private dy = 0;
  private clipName: string | undefined;
  private path = '';
  private out = '';
  private readonly saved: State[] = [];
  private readonly ruler = document.createElement('canvas').getContext('2d');

  /** The recorded elements. */
  toString(): string {
    return this.out;
  }

  save(): void {
    const { fillStyle, strokeStyle, lineWidth, globalAlpha, font, dash, dx, dy } = this;
    const clip = this.clipName;
    this.saved.push({
      ...{ fillStyle, strokeStyle, lineWidth, globalAlpha, font, dash, dx, dy, clip },
    });
  }

  restore(): void {
    const s = this.saved.pop();
    if (!s) return;
    const { clip, ...rest } = s;
    Object.assign(this, rest);
    this.clipName = clip;
  }

  translate(x: number, y: number): void {
    this.dx += x;
    this.dy += y;
  }

  beginPath(): void {
    this.path = '';
  }

  moveTo(x: number, y: number): void {
    this.path += `M${px(x + this.dx)} ${px(y + this.dy)}`;
  }

  lineTo(x: number, y: number): void {
    this.path += `${this.path === '' ? 'M' : 'L'}${px(x + this.dx)} ${px(y + this.dy)}`;
  }

  closePath(): void {
    this.path += 'z';
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path += `M${px(x + this.dx)} ${px(y + this.dy)}h${px(width)}v${px(height)}h${px(-width)}z`;
  }

  clip(): void {
    this.clipName = `clip-${++clips}`;
    this.out += tag('clipPath', { id: this.clipName }, tag('path', { d: this.path }));
  }

  setLineDash(segments: Iterable<number>): void {
    this.dash = [...segments].map(px).join(' ');
  }

  fill(): void {
    this.add('path', { d: this.path, ...this.filled() });
  }

  stroke(): void {
    this.add('path', { d: this.path, ...this.stroked() });
  }

  clearRect(): void {
    // The document is empty at first, and charts clear only all of it.
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.add('rect', { x: x + this.dx, y: y + this.dy, width, height, ...this.filled() });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.add('rect', { x: x + this.dx, y: y + this.dy, width, height, ...this.stroked() });
  }

  fillText(text: string, x: number, y: number): void {
    const [, size = '10', family = 'sans-serif'] = /([\d.]+)px (.*)$/.exec(this.font) ?? [];
    const middle = this.textBaseline === 'middle' ? 0.35 * Number(size) : 0;
    const at = { x: x + this.dx, y: y + this.dy + middle };
    const font = { 'font-size': size, 'font-family': family };
    this.add('text', { ...at, ...font, ...this.filled() }, escape(text));
  }

  measureText(text: string): TextMetrics {
    if (!this.ruler) return { width: 6 * text.length } as TextMetrics;
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  drawImage(image: HTMLCanvasElement, ...places: Places): void {
    const [sx, sy, sw, sh, x, y, width, height] = places;
    this.out += canvasSVG(
      image,
      { x: sx, y: sy, width: sw, height: sh },
      { x: x + this.dx, y: y + this.dy, width, height },
    );
  }

  private filled(): Attributes {
    return {
      fill: typeof this.fillStyle === 'string' ? this.fillStyle : '#000',
      'fill-opacity': this.globalAlpha < 1 ? this.globalAlpha : undefined,
    };
  }

  private stroked(): Attributes {
    return {
      fill: 'none',
      stroke: typeof this.strokeStyle === 'string' ? this.strokeStyle : '#000',
      'stroke-width': this.lineWidth,
      'stroke-opacity': this.globalAlpha < 1 ? this.globalAlpha : undefined,
      'stroke-dasharray': this.dash === '' ? undefined : this.dash,
    };
  }

  private add(name: string, attributes: Attributes, inside = ''): void {
    const clip = this.clipName === undefined ? undefined : `url(#${this.clipName})`;
    this.out += tag(name, { ...attributes, 'clip-path': clip }, inside);
  }
}
