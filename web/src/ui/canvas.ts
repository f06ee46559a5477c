import { SVGPaper } from './export/svgPaper.ts';
import { exportAs, type Paper } from './paper.ts';

/** Sizes a canvas in CSS pixels, sharp on any screen, and paints on it. The canvas is exported with the same strokes. */
export function paintOn(
  element: HTMLCanvasElement | null,
  width: number,
  height: number,
  paint: (paper: Paper) => void,
): void {
  const paper = element?.getContext('2d');
  if (!element || !paper || width <= 0 || height <= 0) return;
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (element.width !== w || element.height !== h) {
    element.width = w;
    element.height = h;
  } else paper.reset(); // cheaper than a new bitmap in each frame
  paper.setTransform(scale, 0, 0, scale, 0, 0);
  paint(paper);
  exportAs(element, () => {
    const svg = new SVGPaper();
    paint(svg);
    return svg.toString();
  });
}

/** Truncates text to the available pixels; empty if fewer than two characters fit. */
export function cutText(paper: Pick<Paper, 'measureText'>, text: string, room: number): string {
  if (paper.measureText(text).width <= room) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (paper.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? '' : `${text.slice(0, low)}…`;
}
