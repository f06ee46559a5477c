import type { ExplainFunction } from '../api/index.ts';
import { count, elide } from '../format/index.ts';
import { useHref } from '../route/index.ts';
import { GroupBy, Groups } from './Groups.tsx';
import { onlyThese, writeSelection, type Selection } from './selection.ts';

/** The field of functions: no explanation has it, as what it compares is of the same ones. */
export const functionField = 'function';

const most = 5;

/** The functions of a selection, the most frequent first, each a way to what is of it alone. */
export function Functions(props: { functions: readonly ExplainFunction[]; selection: Selection }) {
  const { functions, selection } = props;
  const href = useHref();
  return (
    <>
      <div className="explain-actions">
        <p className="explain-functions small">
          Functions:{' '}
          {functions.slice(0, most).map((f, i) => (
            <span key={`${f.program} ${f.function}`}>
              {i > 0 && ', '}
              {f.term === '' || functions.length === 1 ? (
                elide(f.function, 40)
              ) : (
                <a
                  title={`explain only ${f.function}`}
                  href={href({
                    query: {
                      explain: writeSelection(onlyThese(selection, functionField, [f.term])),
                    },
                  })}
                >
                  {elide(f.function, 40)}
                </a>
              )}{' '}
              {count(f.executions)}
            </span>
          ))}
          {functions.length > most && ' …'}
        </p>
        <GroupBy field={functionField} name="function" selection={selection} />
      </div>
      {selection.by === functionField && <Groups selection={selection} />}
    </>
  );
}
