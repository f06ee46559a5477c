import { useCallback, useMemo } from 'react';
import { count, plural } from '../format/index.ts';
import { Chart, ExportFigure, Table, type ChartColors, type Column } from '../ui/index.ts';
import type { Result } from './ask.ts';
import { axesOf, cellNumber, cellText, mostPoints, numeric, optionOf, type Kind } from './chart.ts';

interface Row {
  key: string;
  cells: Result['rows'][number];
}

function columnsOf(result: Result): Column<Row>[] {
  const numbers = new Set(numeric(result));
  return result.columns.map((c, i) => ({
    id: `${i} ${c.name}`,
    header: c.name,
    title: c.type,
    ...(numbers.has(i) ? { align: 'right' as const } : {}),
    value: (row) => {
      const v = row.cells[i];
      if (v === null || v === undefined) return undefined;
      return numbers.has(i) ? (cellNumber(v) ?? cellText(v)) : cellText(v);
    },
    cell: (row) => {
      const v = row.cells[i];
      if (v === null || v === undefined) return <span className="muted">null</span>;
      const text = cellText(v);
      return (
        <span className="sql-cell" title={text.length > 30 ? text.slice(0, 2000) : undefined}>
          {text}
        </span>
      );
    },
  }));
}

/** Describes the size of a result. */
export function answerWords(result: Result): string {
  const took = `${result.seconds < 10 ? result.seconds.toFixed(2) : Math.round(result.seconds)} s`;
  const rows = plural(result.rows.length, 'row');
  return result.cut ? `first ${rows} of more, in ${took}` : `${rows} in ${took}`;
}

/** A result as a table. */
export function Grid({ result }: { result: Result }) {
  const columns = useMemo(() => columnsOf(result), [result]);
  const rows = useMemo(() => result.rows.map((cells, i) => ({ key: String(i), cells })), [result]);
  return (
    <Table
      name="sql"
      label="Query result"
      columns={columns}
      rows={rows}
      rowKey={(r) => r.key}
      empty="No rows."
      footer={result.cut ? <span>more rows available: raise the limit or export</span> : null}
    />
  );
}

/** A result as a chart with selectable columns. */
export function Drawing(props: {
  result: Result;
  kind: Exclude<Kind, 'table'>;
  x: string;
  y: string;
  onX: (name: string) => void;
  onY: (name: string) => void;
}) {
  const { result, kind, x, y } = props;
  const axes = useMemo(() => axesOf(result, x, y), [result, x, y]);
  const option = useCallback(
    (c: ChartColors) => (axes ? optionOf(result, kind, axes, c) : {}),
    [result, kind, axes],
  );
  if (!axes) return <p className="muted sql-note">No numeric columns.</p>;
  const nameX = result.columns[axes.x]?.name ?? '';
  const nameY = result.columns[axes.y]?.name ?? '';
  return (
    <div className="sql-drawing" data-figure>
      <div className="sql-axes">
        <label>
          x{' '}
          <select className="field" value={nameX} onChange={(e) => props.onX(e.target.value)}>
            {result.columns.map((c, i) => (
              <option key={`${i} ${c.name}`}>{c.name}</option>
            ))}
          </select>
        </label>
        <label>
          y{' '}
          <select className="field" value={nameY} onChange={(e) => props.onY(e.target.value)}>
            {numeric(result).map((i) => (
              <option key={i}>{result.columns[i]?.name}</option>
            ))}
          </select>
        </label>
        {result.rows.length > mostPoints && (
          <span className="muted">the first {count(mostPoints)} rows drawn</span>
        )}
        <span className="push" />
        <ExportFigure title={`${nameY} by ${nameX}`} />
      </div>
      <div className="sql-chart">
        <Chart
          key={kind}
          label={`${nameY} by ${nameX} of ${plural(Math.min(result.rows.length, mostPoints), 'row')}, as ${kind === 'bar' ? 'bars' : kind === 'line' ? 'a line' : 'points'}`}
          option={option}
          height="fill"
        />
      </div>
    </div>
  );
}
