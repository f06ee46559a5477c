import { useRunQuery, type ExplainGroup, type ExplainGroups } from '../api/index.ts';
import { count, duration, percent, plural } from '../format/index.ts';
import { useHref } from '../route/index.ts';
import { Failure, PlainTable, Waiting } from '../ui/index.ts';
import {
  onlyThese,
  selectionParams,
  withoutThese,
  writeSelection,
  type Selection,
} from './selection.ts';

/** A link that toggles grouping by a field. */
export function GroupBy(props: { field: string; name: string; selection: Selection }) {
  const href = useHref();
  const shown = props.selection.by === props.field;
  return (
    <a
      className="button"
      aria-expanded={shown}
      title={`count and lost time by ${props.name}`}
      href={href({
        query: { explain: writeSelection({ ...props.selection, by: shown ? '' : props.field }) },
      })}
    >
      Group by {props.name}
    </a>
  );
}

/** The selection grouped by a field: counts, lost time and filter links. */
export function Groups({ selection }: { selection: Selection }) {
  const result = useRunQuery<ExplainGroups>(
    'explain/groups',
    { ...selectionParams(selection), by: selection.by },
    { every: 10_000, keep: true },
  );
  const g = result.data;
  if (!g && result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
  if (!g) return <Waiting label="counting" lines={4} />;
  const most = Math.max(1, ...[...g.rows, g.rest, g.none].map((r) => r.lost_us));
  const left = g.values - g.rows.length;
  return (
    <PlainTable name={`anomalies by ${g.name}`} title={`Anomalies by ${g.name}`}>
      <table className="explain-groups" aria-label={`The selection by ${g.name}`}>
        <thead>
          <tr>
            <th scope="col">{g.name}</th>
            <th scope="col" className="right">
              anomalies
            </th>
            <th scope="col" className="right">
              lost
            </th>
            <td />
            <td />
          </tr>
        </thead>
        <tbody>
          {g.rows.map((r) => (
            <Row
              key={r.term}
              row={r}
              label={r.label}
              groups={g}
              most={most}
              selection={selection}
            />
          ))}
          <Row
            row={g.rest}
            label={plural(left, 'more value')}
            groups={g}
            most={most}
            selection={selection}
          />
          <Row row={g.none} label="no value" groups={g} most={most} selection={selection} />
        </tbody>
        {g.looked < g.selected && (
          <caption>
            There are very many: of {count(g.selected)} executions {count(g.looked)} were looked at.
          </caption>
        )}
      </table>
    </PlainTable>
  );
}

function Row(props: {
  row: ExplainGroup;
  label: string;
  groups: ExplainGroups;
  most: number;
  selection: Selection;
}) {
  const { row, label, groups, selection } = props;
  const href = useHref();
  const to = (s: Selection) => href({ query: { explain: writeSelection(s) } });
  if (row.executions === 0) return null;
  const share = percent((100 * row.executions) / Math.max(1, groups.looked));
  const alone = groups.rows.length === 1 && groups.rest.executions + groups.none.executions === 0;
  return (
    <tr className={row.term === '' ? 'muted' : ''}>
      <th scope="row" title={label}>
        {label}
      </th>
      <td className="right" title={`${share} of the selection`}>
        {count(row.executions)}
      </td>
      <td className="right">{duration(row.lost_us)}</td>
      <td className="group-bar" aria-hidden="true">
        <i className="bar-here" style={{ width: `${(100 * row.lost_us) / props.most}%` }} />
      </td>
      <td className="group-actions">
        {row.term !== '' && !alone && (
          <>
            <a
              href={to(onlyThese(selection, groups.field, [row.term]))}
              title={`keep only ${groups.name} ${label}`}
              aria-label={`only ${groups.name} ${label}`}
            >
              only
            </a>
            <a
              href={to(withoutThese(selection, [row.term]))}
              title={`exclude ${groups.name} ${label}`}
              aria-label={`without ${groups.name} ${label}`}
            >
              without
            </a>
          </>
        )}
      </td>
    </tr>
  );
}
