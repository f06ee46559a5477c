// A part of the page as an SVG document with title and origin: its shapes and text at their places.

import { cutText } from '../canvas.ts';
import { drawingOf } from '../paper.ts';
import { canvasSVG } from './cells.ts';
import { escape, tag } from './xml.ts';

/** The metadata of a figure. */
export interface Caption {
  title: string;
  /** Run and version of the program. */
  origin: string;
}

const margin = 16;
const titleHeight = 26;
const originHeight = 22;

/** What is not drawn: controls, tables, which are exported as such, and what only screen readers or the pointer need. */
const left = [
  ...['.menu', '.button', '.segmented', '.table-box', 'table', 'input', 'select', 'textarea'],
  ...['details', '.visually-hidden', '.float', 'kbd', '.plain-table', '[data-no-export]'],
  ...['.panel-head h2', '[data-figure] > h3'],
].join(', ');

/** Styles of SVG elements that style sheets may set, with the values that need not be written. */
const styles: Readonly<Record<string, string>> = {
  fill: 'rgb(0, 0, 0)',
  stroke: 'none',
  'stroke-width': '1px',
  'stroke-dasharray': 'none',
  'stroke-linejoin': 'miter',
  'fill-opacity': '1',
  'stroke-opacity': '1',
  opacity: '1',
};

const textStyles = ['font-family', 'font-size', 'font-weight', 'text-anchor'];

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Draws elements relative to an origin, and remembers how far they reach. */
class Drawing {
  out = '';
  right = 0;
  bottom = 0;
  private gradients = 0;
  private readonly origin: { left: number; top: number };
  private readonly ruler = document.createElement('canvas').getContext('2d');

  constructor(origin: { left: number; top: number }) {
    this.origin = origin;
  }

  /** Draws an element and what it contains; within is the visible part. */
  element(e: Element, within: Box): void {
    if (e.matches(left)) return;
    const style = getComputedStyle(e);
    if (style.display === 'none' || style.visibility === 'hidden') return;
    const box = e.getBoundingClientRect();
    const place = this.place(box);
    const own = drawingOf(e);
    if (own || e instanceof HTMLCanvasElement || e instanceof SVGElement) {
      if (box.width <= 0 || box.height <= 0) return;
      this.reach(box);
      if (own) this.out += tag('svg', place, own(box.width, box.height) || ' ');
      else if (e instanceof HTMLCanvasElement)
        this.out += canvasSVG(e, { x: 0, y: 0, width: e.width, height: e.height }, place);
      else this.out += copySVG(e, place);
      return;
    }
    this.ground(style, box);
    const clips = style.overflowX !== 'visible' && style.overflowX !== '';
    const inside = clips ? meet(within, box) : within;
    for (const node of e.childNodes) {
      if (node instanceof Element) this.element(node, inside);
      else if (node instanceof Text) this.text(node, style, inside);
    }
  }

  private place(box: DOMRect) {
    const { width, height } = box;
    return { x: box.left - this.origin.left, y: box.top - this.origin.top, width, height };
  }

  private reach(box: { right: number; bottom: number }): void {
    this.right = Math.max(this.right, box.right - this.origin.left);
    this.bottom = Math.max(this.bottom, box.bottom - this.origin.top);
  }

  /** Draws the background and the borders of an element. */
  private ground(style: CSSStyleDeclaration, box: DOMRect): void {
    if (box.width <= 0 || box.height <= 0) return;
    const place = this.place(box);
    const radius = Number.parseFloat(style.borderTopLeftRadius) || 0;
    const rx = Math.min(radius, box.width / 2, box.height / 2) || undefined;
    const rect = (fill: string) => {
      this.out += tag('rect', { ...place, rx, fill });
      this.reach(box);
    };
    if (paints(style.backgroundColor)) rect(style.backgroundColor);
    const colors = gradient(style.backgroundImage);
    if (colors.length > 1) {
      const id = `gradient-${++this.gradients}`;
      const stops = colors.map((c, i) =>
        tag('stop', { offset: `${(100 * i) / (colors.length - 1)}%`, 'stop-color': c }),
      );
      this.out += tag('linearGradient', { id }, stops.join(''));
      rect(`url(#${id})`);
    }
    if (style.backgroundImage.startsWith('repeating-linear-gradient(')) {
      const id = `hatch-${++this.gradients}`;
      const stroke = style.backgroundImage.match(color)?.at(-1);
      const line = tag('path', { d: 'M-1 7L7 -1', stroke });
      this.out += tag('pattern', { id, width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, line);
      rect(`url(#${id})`);
    }
    const outline = Number.parseFloat(style.outlineWidth) || 0;
    if (outline > 0 && style.outlineStyle === 'solid' && paints(style.outlineColor))
      this.out += tag('rect', {
        ...place,
        ...{ fill: 'none', stroke: style.outlineColor, 'stroke-width': outline },
      });
    const border = Number.parseFloat(style.borderLeftWidth) || 0;
    if (border > 0 && style.borderLeftStyle === 'solid' && paints(style.borderLeftColor))
      this.out += tag('rect', { ...place, width: border, fill: style.borderLeftColor });
  }

  /** Draws text line by line, as the page breaks it. */
  private text(node: Text, style: CSSStyleDeclaration, within: Box): void {
    const size = Number.parseFloat(style.fontSize) || 12;
    for (const l of linesOf(node)) {
      if (l.box.left >= within.right || l.box.top >= within.bottom || l.box.bottom <= within.top)
        continue;
      let words = style.textTransform === 'uppercase' ? l.text.toUpperCase() : l.text;
      if (l.box.right > within.right + 1 && this.ruler) {
        this.ruler.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        words = cutText(this.ruler, words, within.right - l.box.left);
      }
      if (words === '') continue;
      this.reach({ right: Math.min(l.box.right, within.right), bottom: l.box.bottom });
      this.out += tag(
        'text',
        {
          x: l.box.left - this.origin.left,
          y: (l.box.top + l.box.bottom) / 2 - this.origin.top + 0.35 * size,
          fill: style.color,
          'font-family': style.fontFamily,
          'font-size': size,
          'font-weight': style.fontWeight === '400' ? undefined : style.fontWeight,
        },
        escape(words),
      );
    }
  }
}

function meet(a: Box, b: Box): Box {
  return {
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  };
}

/** Returns whether CSS paints something with a color. */
function paints(color: string): boolean {
  return color !== '' && color !== 'transparent' && !/^rgba?\(.*[,/]\s*0\)$/.test(color);
}

const color = /rgba?\([^)]*\)|#[0-9a-f]+/g;

/** The colors of a gradient from left to right; none for other images. */
function gradient(image: string): string[] {
  if (!image.startsWith('linear-gradient(')) return [];
  return image.match(color) ?? [];
}

/** The lines of a text as the page breaks it. */
function linesOf(node: Text): { text: string; box: Box }[] {
  const lines: { text: string; box: Box }[] = [];
  const range = document.createRange();
  // jsdom has no layout.
  const layout = typeof Range.prototype.getBoundingClientRect === 'function';
  for (const word of node.data.matchAll(/\S+/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const box = layout ? range.getBoundingClientRect() : new DOMRect();
    if (layout && box.width === 0) continue;
    const last = lines.at(-1);
    if (last && Math.abs(last.box.top - box.top) < 2) {
      last.text += ` ${word[0]}`;
      last.box.right = box.right;
    } else {
      const { left: x, top, right, bottom } = box;
      lines.push({ text: word[0], box: { left: x, top, right, bottom } });
    }
  }
  return lines;
}

/** Copies an SVG element with the styles that a file on its own does not have. */
function copySVG(from: Element, place: Readonly<Record<string, number>> = {}): string {
  const style = getComputedStyle(from);
  if (style.display === 'none' || from.matches(left)) return '';
  const attributes: Record<string, string | number> = {};
  for (const { name, value } of from.attributes) {
    if (!/^(class|style|role|tabindex|aria-.*|data-.*|on.*)$/.test(name)) attributes[name] = value;
  }
  const isText = from.localName === 'text' || from.localName === 'tspan';
  for (const [name, usual] of Object.entries(styles)) {
    const value = style.getPropertyValue(name);
    if (value !== '' && value !== usual) attributes[name] = value;
    else if (String(attributes[name] ?? '').startsWith('var(')) attributes[name] = value;
  }
  if (isText)
    for (const name of textStyles) {
      const value = style.getPropertyValue(name);
      if (value !== '') attributes[name] = value;
    }
  let inside = '';
  for (const node of from.childNodes) {
    if (node instanceof Element) inside += copySVG(node);
    else if (node instanceof Text) inside += escape(node.data);
  }
  return tag(from.localName, { ...attributes, ...place }, inside);
}

/** Returns a part of the page as an SVG document. */
export function figureSVG(part: Element, caption: Caption): string {
  const box = part.getBoundingClientRect();
  const drawing = new Drawing(box);
  const all = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
  for (const child of part.children) drawing.element(child, all);
  const style = getComputedStyle(document.body);
  const width = Math.ceil(Math.max(drawing.right, box.width) + 2 * margin);
  const height = Math.ceil(drawing.bottom + 2 * margin + titleHeight + originHeight);
  const words = (text: string, y: number, size: number, weight?: number) =>
    tag(
      'text',
      {
        ...{ x: margin, y, fill: style.color || '#000', 'font-family': style.fontFamily },
        ...{ 'font-size': size, 'font-weight': weight },
      },
      escape(text),
    );
  return tag(
    'svg',
    { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` },
    tag('title', {}, escape(`${caption.title}, ${caption.origin}`)) +
      tag('rect', { width, height, fill: groundOf(part) }) +
      words(caption.title, margin + 14, 15, 600) +
      tag('g', { transform: `translate(${margin} ${margin + titleHeight})` }, drawing.out || ' ') +
      words(caption.origin, height - margin, 11),
  );
}

/** The color behind an element. */
function groundOf(element: Element): string {
  for (let e: Element | null = element; e; e = e.parentElement) {
    const color = getComputedStyle(e).backgroundColor;
    if (paints(color)) return color;
  }
  return '#fff';
}

/** Returns an SVG document as a PNG of twice its size. */
export async function asPNG(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 2 * image.naturalWidth;
  canvas.height = 2 * image.naturalHeight;
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((b) => (b ? resolve(b) : reject(new Error('the browser cannot write PNG'))));
  });
}
