import { bare, elide, pathParts, pathTail, source } from '../format/index.ts';
import './ui.css';

/** The name of a function, short; all of it when it is pointed at. */
export function FunctionName(props: { name: string; most?: number }) {
  return (
    <span className="name" title={props.name}>
      {elide(bare(props.name), props.most ?? 56)}
    </span>
  );
}

/** The name of a function with file and line beside. */
export function FunctionPlace(props: { name: string; most?: number }) {
  const where = source(props.name);
  return (
    <>
      <FunctionName {...props} />
      {where !== '' && <span className="name-place"> {where}</span>}
    </>
  );
}

/** The end of a call path; all of it, a function in each line, when it is pointed at. */
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
