import { useEffect, useMemo, useRef, useState } from 'react';
import type { MessageMatrix, MessageTotal } from '../../api/index.ts';
import { ramp } from '../../color/index.ts';
import { bytes, count } from '../../format/index.ts';
import { choice, useParam } from '../../route/index.ts';
import { useTheme } from '../../theme/index.ts';
import {
  ExportFigure,
  ScaleChoice,
  Segmented,
  Table,
  useAxisScale,
  type AxisScale,
  type Column,
} from '../../ui/index.ts';

const unit = choice('bytes', 'messages');

const units = [
  ['bytes', 'Bytes'],
  ['messages', 'Messages'],
] as const;

function ranks(first: number, group: number): string {
  return group === 1 ? `${first}` : `${first}–${first + group - 1}`;
}

/** Positions of pairs in a square of groups, on a scale from 0 to 1. */
export function square(matrix: MessageMatrix, by: 'bytes' | 'messages', scale: AxisScale = 'log') {
  const size = Math.max(0, ...matrix.pairs.map((p) => Math.max(p.from, p.to))) / matrix.group + 1;
  const most = Math.max(1, ...matrix.pairs.map((p) => p[by]));
  return {
    size: Math.floor(size),
    cells: matrix.pairs.map((p) => ({
      x: p.to / matrix.group,
      y: p.from / matrix.group,
      share: scale === 'linear' ? p[by] / most : Math.log1p(p[by]) / Math.log1p(most),
    })),
  };
}

/** Messages between ranks in the entire run: an image, and a table of the pairs with the most. */
export function Messages({ matrix, title }: { matrix: MessageMatrix; title: string }) {
  const [by, setBy] = useParam('messages', unit);
  const [sort, setSort] = useState('-bytes');
  const [scale] = useAxisScale();
  const canvas = useRef<HTMLCanvasElement>(null);
  const scaleWord = scale === 'log' ? 'logarithmic' : 'linear';
  const theme = useTheme();
  const { size, cells } = useMemo(() => square(matrix, by, scale), [matrix, by, scale]);
  useEffect(() => {
    const element = canvas.current;
    const paper = element?.getContext('2d');
    if (!element || !paper) return;
    element.width = size;
    element.height = size;
    const colors = ramp(theme);
    for (const c of cells) {
      const at = Math.round(c.share * 255) * 3;
      paper.fillStyle = `rgb(${colors[at] ?? 0} ${colors[at + 1] ?? 0} ${colors[at + 2] ?? 0})`;
      paper.fillRect(c.x, c.y, 1, 1);
    }
  }, [size, cells, theme]);
  const columns: Column<MessageTotal>[] = [
    {
      id: 'from',
      header: 'From rank',
      value: (p) => p.from,
      cell: (p) => ranks(p.from, matrix.group),
    },
    { id: 'to', header: 'To rank', value: (p) => p.to, cell: (p) => ranks(p.to, matrix.group) },
    {
      id: 'messages',
      header: 'Messages',
      align: 'right',
      value: (p) => p.messages,
      cell: (p) => count(p.messages),
    },
    {
      id: 'bytes',
      header: 'Bytes',
      title: 'Of messages whose size is known',
      align: 'right',
      value: (p) => p.bytes,
      cell: (p) => bytes(p.bytes),
    },
  ];
  return (
    <section className="panel" aria-labelledby={`messages-${matrix.program}`} data-figure>
      <header className="panel-head">
        <h2 id={`messages-${matrix.program}`}>{title}</h2>
        <span className="push" />
        <ScaleChoice of="colors" />
        <Segmented small label="Unit" choices={units} chosen={by} onChoose={setBy} />
        <ExportFigure title={`${by === 'bytes' ? 'Bytes' : 'Messages'}: ${title}`} />
      </header>
      <div className="messages">
        <figure>
          <canvas
            ref={canvas}
            role="img"
            aria-label={`Matrix of ${by} between ranks, on a ${scaleWord} scale; the table beside it has the same values`}
          />
          <figcaption>
            senders from top to bottom, receivers from left to right
            {matrix.group > 1 && `; ${matrix.group} ranks in each row`}; {scaleWord} scale
          </figcaption>
        </figure>
        <Table<MessageTotal>
          name="messages"
          label="Messages between ranks"
          columns={columns}
          rows={matrix.pairs}
          rowKey={(p) => `${p.from}-${p.to}`}
          sort={sort}
          onSort={setSort}
        />
      </div>
    </section>
  );
}
