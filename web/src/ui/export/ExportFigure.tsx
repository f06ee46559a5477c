import { useRef, useState } from 'react';
import { useLive } from '../../api/index.ts';
import { saveBlob, saveText } from '../clipboard.ts';
import { Menu } from '../Menu.tsx';
import { asPNG, figureSVG } from './figure.ts';
import { fileName, origin } from './origin.ts';
import './export.css';

/** A menu that saves the nearest element around it with data-figure, with title, run and version. */
export function ExportFigure({ title }: { title: string }) {
  const { run, overview } = useLive();
  const [status, setStatus] = useState('');
  const here = useRef<HTMLSpanElement>(null);
  const name = fileName(run, title);
  const draw = () => {
    const part = here.current?.closest('[data-figure]');
    return part ? figureSVG(part, { title, origin: origin(run, overview?.version) }) : '';
  };
  const png = async () => {
    try {
      saveBlob(`${name}.png`, await asPNG(draw()));
      setStatus('');
    } catch {
      setStatus('The browser cannot draw the figure.');
    }
  };
  return (
    <span ref={here} className="export-figure">
      <Menu label="Export" title={`Save as an image: ${title}`}>
        <button
          type="button"
          className="menu-item"
          onClick={() => saveText(`${name}.svg`, draw(), 'image/svg+xml')}
        >
          Download SVG
        </button>
        <button type="button" className="menu-item" onClick={() => void png()}>
          Download PNG
        </button>
        <span role="status" className="muted small">
          {status}
        </span>
      </Menu>
    </span>
  );
}
