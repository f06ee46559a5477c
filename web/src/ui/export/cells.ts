import { px, tag } from './xml.ts';

const mostRuns = 40_000; // beyond, files become too large for programs that draw figures

/** Draws pixels as rectangles that are one unit high, by color. Undefined if there are too many. */
export function cellsSVG(image: ImageData): string | undefined {
  const { data, width, height } = image;
  const words = new Uint32Array(data.buffer, data.byteOffset, width * height); // RGBA in memory order
  const paths = new Map<number, string>();
  let runs = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width;) {
      const at = y * width + x;
      const color = words[at] ?? 0;
      let end = x + 1;
      while (end < width && words[y * width + end] === color) end++;
      if ((data[4 * at + 3] ?? 0) > 0) {
        if (++runs > mostRuns) return undefined;
        paths.set(color, `${paths.get(color) ?? ''}M${x} ${y}h${end - x}v1h${x - end}z`);
      }
      x = end;
    }
  }
  let out = '';
  const rgba = new Uint8Array(4);
  const word = new Uint32Array(rgba.buffer);
  for (const [color, d] of paths) {
    word[0] = color;
    const alpha = (rgba[3] ?? 255) / 255;
    out += tag('path', {
      d,
      fill: `rgb(${rgba[0]},${rgba[1]},${rgba[2]})`,
      'fill-opacity': alpha < 1 ? px(alpha) : undefined,
    });
  }
  return out;
}

/** Draws a part of a canvas at a place: its pixels as rectangles or, if there are very many, as an image. */
export function canvasSVG(
  canvas: HTMLCanvasElement,
  from: { x: number; y: number; width: number; height: number },
  to: { x: number; y: number; width: number; height: number },
): string {
  const { width, height } = canvas;
  const copy = document.createElement('canvas'); // reading slows a canvas down
  copy.width = width;
  copy.height = height;
  const paper = copy.getContext('2d', { willReadFrequently: true });
  if (!paper || width === 0 || height === 0) return '';
  paper.drawImage(canvas, 0, 0);
  const inside =
    cellsSVG(paper.getImageData(0, 0, width, height)) ??
    tag('image', { width, height, href: canvas.toDataURL(), 'image-rendering': 'pixelated' });
  return tag(
    'svg',
    {
      ...to,
      viewBox: [from.x, from.y, from.width, from.height].map(String).join(' '),
      preserveAspectRatio: 'none',
      'shape-rendering': 'crispEdges',
    },
    inside || ' ',
  );
}
