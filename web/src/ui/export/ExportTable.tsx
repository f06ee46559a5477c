import { useRef, useState, type ReactNode } from 'react';
import { useLive } from '../../api/index.ts';
import { copyText, saveText } from '../clipboard.ts';
import { Menu } from '../Menu.tsx';
import { asCSV, asMarkdown, asTSV, type Column } from '../table/column.ts';
import { fileName, origin } from './origin.ts';
import './export.css';

/** A menu that copies or saves rows. */
export function ExportTable<T>(props: {
  /** Names the file. */
  name: string;
  /** Names the table in Markdown. */
  title: string;
  columns: () => readonly Column<T>[];
  rows: () => readonly T[];
}) {
  const { run, overview } = useLive();
  const [status, setStatus] = useState('');
  const name = fileName(run, props.name);
  const copy = async (text: string) => {
    setStatus(
      (await copyText(text)) ? 'copied' : 'copy failed: the browser blocks clipboard access',
    );
  };
  const markdown = () =>
    `${asMarkdown(props.columns(), props.rows())}\n${props.title}, ${origin(run, overview?.version)}\n`;
  return (
    <span className="export-table">
      <span role="status" className="muted status">
        {status}
      </span>
      <Menu label="Export" title={`Copy or save as a table: ${props.title}`}>
        <button
          type="button"
          className="menu-item"
          onClick={() => void copy(asTSV(props.columns(), props.rows()))}
        >
          Copy as TSV
        </button>
        <button type="button" className="menu-item" onClick={() => void copy(markdown())}>
          Copy as Markdown
        </button>
        <button
          type="button"
          className="menu-item"
          onClick={() => saveText(`${name}.csv`, asCSV(props.columns(), props.rows()), 'text/csv')}
        >
          Download CSV
        </button>
        <button
          type="button"
          className="menu-item"
          onClick={() => saveText(`${name}.md`, markdown(), 'text/markdown')}
        >
          Download Markdown
        </button>
      </Menu>
    </span>
  );
}

/** A plain table with a menu to export its text. */
export function PlainTable(props: { name: string; title: string; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const rows = (part: string) =>
    [...(box.current?.querySelectorAll<HTMLTableRowElement>(`table ${part} tr`) ?? [])].map((r) =>
      [...r.cells].filter((c) => c.ariaHidden !== 'true' && !c.matches('.group-actions')).map(text),
    );
  return (
    <div className="plain-table" ref={box}>
      {props.children}
      <ExportTable<string[]>
        name={props.name}
        title={props.title}
        columns={() =>
          (rows('thead')[0] ?? []).map((header, i) => ({
            id: String(i),
            header,
            value: (r) => r[i] ?? '',
          }))
        }
        rows={() => rows('tbody')}
      />
    </div>
  );
}

function text(cell: HTMLTableCellElement): string {
  return cell.textContent.replace(/\s+/g, ' ').trim();
}
