import type { ExplainFunction } from '../api/index.ts';
import { count, elide } from '../format/index.ts';
import { useHref } from '../route/index.ts';
import { GroupBy, Groups } from './Groups.tsx';
import { onlyThese, writeSelection, type Selection } from './selection.ts';

/** The function field. Explanations lack it because they compare the same functions. */
export const functionField = 'function';

const most = 5;

/** The functions of a selection, most frequent first, with links that filter by them. */
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
                  title={`keep only ${f.function}`}
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
