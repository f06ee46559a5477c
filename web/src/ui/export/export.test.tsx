import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview } from '../../test/fixtures/run.ts';
import { renderIn } from '../../test/render.tsx';
import { withoutStyles } from '../chart/echarts.ts';
import { exportAs } from '../paper.ts';
import { cellsSVG } from './cells.ts';
import { ExportFigure } from './ExportFigure.tsx';
import { PlainTable } from './ExportTable.tsx';
import { fileName } from './origin.ts';
import { SVGPaper } from './svgPaper.ts';

let saved: { name: string; data: Blob }[] = [];

beforeEach(() => {
  saved = [];
  let last: Blob | undefined;
  vi.stubGlobal(
    'URL',
    Object.assign(URL, {
      createObjectURL: (b: Blob) => {
        last = b;
        return 'blob:x';
      },
      revokeObjectURL: () => undefined,
    }),
  );
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (
    this: HTMLAnchorElement,
  ) {
    if (last) saved.push({ name: this.download, data: last });
  });
});

afterEach(() => vi.unstubAllGlobals());

const session = { run: 'monday', overview: overview(8, { version: 'v1.2' }) };

async function press(name: string): Promise<string> {
  await userEvent.click(screen.getByRole('button', { name, hidden: true }));
  return (await saved.at(-1)?.data.text()) ?? '';
}

function parsed(svg: string): Document {
  const doc = new DOMParser().parseFromString(svg, 'image/svg+xml');
  expect(doc.querySelector('parsererror')).toBeNull();
  return doc;
}

describe('a figure', () => {
  test('has title, run, version and the content without controls', async () => {
    // jsdom lays out nothing, so each word is a line.
    renderIn(
      session,
      <section data-figure>
        <header className="panel-head">
          <h2>Heading</h2>
          <span>a&lt;b</span>
          <button type="button" className="button">
            Explain box
          </button>
          <ExportFigure title="Lost & found" />
        </header>
        <div
          ref={(e) => {
            if (!e) return;
            e.getBoundingClientRect = () => new DOMRect(10, 20, 300, 100);
            exportAs(e, (w, h) => `<rect width="${w}" height="${h}"/>`);
          }}
        />
      </section>,
    );
    const svg = await press('Download SVG');
    expect(saved[0]?.name).toBe('monday-Lost-found.svg');
    const doc = parsed(svg);
    const words = [...doc.querySelectorAll('text')].map((t) => t.textContent);
    expect(words).toEqual(['Lost & found', 'a<b', 'run monday, Chimbuko v1.2']);
    const rect = doc.querySelector('svg svg rect');
    expect(rect?.getAttribute('width')).toBe('300');
    expect(rect?.parentElement?.getAttribute('x')).toBe('10');
    expect(Number(doc.documentElement.getAttribute('width'))).toBeGreaterThan(310);
  });

  test('of inline SVG keeps shapes, text and styles', async () => {
    renderIn(
      session,
      <figure data-figure>
        <ExportFigure title="Bars" />
        <svg
          viewBox="0 0 10 10"
          ref={(e) => {
            if (e) e.getBoundingClientRect = () => new DOMRect(0, 0, 100, 50);
          }}
        >
          <rect className="bar" width="3" height="4" style={{ fill: 'rgb(1, 2, 3)' }} />
          <text x="1">12 ms</text>
        </svg>
      </figure>,
    );
    const inner = parsed(await press('Download SVG')).querySelector('svg svg');
    expect(inner?.getAttribute('viewBox')).toBe('0 0 10 10');
    expect(inner?.getAttribute('width')).toBe('100');
    expect(inner?.querySelector('rect')?.getAttribute('fill')).toBe('rgb(1, 2, 3)');
    expect(inner?.querySelector('rect')?.hasAttribute('class')).toBe(false);
    expect(inner?.querySelector('text')?.textContent).toBe('12 ms');
  });

  test('has a file name that is valid everywhere', () => {
    expect(fileName('../run 1', 'a/b: "λ" <c>')).toBe('run-1-a-b-λ-c');
    expect(fileName('', '///')).toBe('chimbuko');
    expect(fileName('x'.repeat(300), 'y')).toHaveLength(100);
  });
});

describe('strokes of a canvas', () => {
  test('become SVG elements', () => {
    const paper = new SVGPaper();
    paper.fillStyle = '#123456';
    paper.save();
    paper.translate(10, 20);
    paper.globalAlpha = 0.5;
    paper.fillRect(1, 2, 3, 4);
    paper.beginPath();
    paper.rect(0, 0, 5, 5);
    paper.clip();
    paper.setLineDash([3, 4]);
    paper.beginPath();
    paper.moveTo(0, 0);
    paper.lineTo(1, 1);
    paper.stroke();
    paper.restore();
    paper.font = '11px sans-serif';
    paper.fillText('<b>&\u0001', 0, 0);
    paper.strokeRect(0.5, 0.5, 9, 9);
    const doc = parsed(`<svg xmlns="http://www.w3.org/2000/svg">${paper.toString()}</svg>`);
    const rect = doc.querySelector('rect');
    expect(rect?.getAttribute('x')).toBe('11');
    expect(rect?.getAttribute('fill-opacity')).toBe('0.5');
    const line = doc.querySelector('svg > path');
    expect(line?.getAttribute('d')).toBe('M10 20L11 21');
    expect(line?.getAttribute('stroke-dasharray')).toBe('3 4');
    expect(line?.getAttribute('clip-path')).toBe(`url(#${doc.querySelector('clipPath')?.id})`);
    const text = doc.querySelector('text');
    expect(text?.textContent).toBe('<b>& ');
    expect(text?.getAttribute('fill')).toBe('#123456');
    expect(text?.hasAttribute('clip-path')).toBe(false);
    expect(doc.querySelectorAll('rect')[1]?.getAttribute('fill')).toBe('none');
  });

  test('pixels become rectangles by color', () => {
    const pixel = (...rgba: number[]) => rgba;
    const [red, half, none] = [pixel(255, 0, 0, 255), pixel(0, 0, 9, 51), pixel(0, 0, 0, 0)];
    const image = (width: number, height: number, data: number[][]) =>
      ({ width, height, data: new Uint8ClampedArray(data.flat()) }) as unknown as ImageData;
    const svg = cellsSVG(image(3, 2, [red, red, half, none, red, none]));
    expect(svg).toBe(
      '<path d="M0 0h2v1h-2zM1 1h1v1h-1z" fill="rgb(255,0,0)"/>' +
        '<path d="M2 0h1v1h-1z" fill="rgb(0,0,9)" fill-opacity="0.2"/>',
    );
    const noise = Array.from({ length: 300 * 200 }, (_, i) => (i % 2 === 0 ? red : half));
    expect(cellsSVG(image(300, 200, noise))).toBeUndefined();
  });
});

test('a plain table is exported without its bars', async () => {
  renderIn(
    session,
    <PlainTable name="parts" title="Parts of a call">
      <table>
        <thead>
          <tr>
            <th>Part</th>
            <th>Time</th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th>
              pack <b>3×</b>
            </th>
            <td>1,5 ms</td>
            <td aria-hidden="true">bar</td>
          </tr>
        </tbody>
      </table>
    </PlainTable>,
  );
  expect(await press('Download CSV')).toBe('Part,Time\r\npack 3×,"1,5 ms"\r\n');
  expect(saved[0]?.name).toBe('monday-parts.csv');
  expect(await press('Download Markdown')).toBe(
    '| Part | Time |\n| --- | --- |\n| pack 3× | 1,5 ms |\n\nParts of a call, run monday, Chimbuko v1.2\n',
  );
  expect(within(document.body).getByText('Export')).toBeTruthy();
});

test('a chart has attributes in place of styles', () => {
  expect(
    withoutStyles(
      '<svg><style ><![CDATA[\n\n]]></style><text style="font-size:11px;font-family:sans-serif;" x="1">a</text></svg>',
    ),
  ).toBe('<svg><text font-size="11px" font-family="sans-serif" x="1">a</text></svg>');
});
