// What charts on canvases draw with: a canvas, or an SVG document when the chart is exported.

/** The drawing operations that the page uses. */
export type Paper = Pick<
  CanvasRenderingContext2D,
  | 'fillStyle'
  | 'strokeStyle'
  | 'lineWidth'
  | 'globalAlpha'
  | 'font'
  | 'textBaseline'
  | 'imageSmoothingEnabled'
  | 'save'
  | 'restore'
  | 'translate'
  | 'clip'
  | 'beginPath'
  | 'moveTo'
  | 'lineTo'
  | 'closePath'
  | 'rect'
  | 'fill'
  | 'stroke'
  | 'setLineDash'
  | 'clearRect'
  | 'fillRect'
  | 'strokeRect'
  | 'fillText'
  | 'measureText'
> & {
  drawImage(image: HTMLCanvasElement, ...places: Places): void;
};

/** The part of an image and where to draw it: x, y, width and height of each. */
export type Places = [
  sx: number,
  sy: number,
  sw: number,
  sh: number,
  x: number,
  y: number,
  width: number,
  height: number,
];

/** How elements that are not made of HTML or SVG draw themselves as SVG of a size in CSS pixels. */
const drawings = new WeakMap<Element, (width: number, height: number) => string>();

/** Sets how an element is exported. */
export function exportAs(element: Element, draw: (width: number, height: number) => string): void {
  drawings.set(element, draw);
}

/** Returns how an element is exported; undefined if it is made of HTML, SVG or pixels. */
export function drawingOf(
  element: Element,
): ((width: number, height: number) => string) | undefined {
  return drawings.get(element);
}
