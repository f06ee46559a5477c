import { bare, elide, pathParts, pathTail, source } from '../format/index.ts';
import './ui.css';

/** A shortened function name with the full name as a tooltip. */
export function FunctionName(props: { name: string; most?: number }) {
  return (
    <span className="name" title={props.name}>
      {elide(bare(props.name), props.most ?? 56)}
    </span>
  );
}

/** A function name with file and line. */
export function FunctionPlace(props: { name: string; most?: number }) {
  const where = source(props.name);
  return (
    <>
      <FunctionName {...props} />
      {where !== '' && <span className="name-place"> {where}</span>}
    </>
  );
}

/** The end of a call path with the full path as a tooltip, one function per line. */
export function CallPath(props: { path: string | readonly string[]; parts?: number }) {
  const all = typeof props.path === 'string' ? pathParts(props.path) : props.path;
  return (
    <span
      className="name"
      title={all.map((p, i) => `${' '.repeat(Math.min(i, 20))}${p}`).join('\n')}
    >
      {all.length === 0 ? '–' : pathTail(all, props.parts)}
    </span>
  );
}
