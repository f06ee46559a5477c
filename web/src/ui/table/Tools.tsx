import { Fragment, type ReactNode } from 'react';
import { ExportTable } from '../export/ExportTable.tsx';
import { FilterField } from '../filter/FilterField.tsx';
import { Menu } from '../Menu.tsx';
import type { Column } from './column.ts';

interface ToolsProps<T> {
  name: string;
  label: string;
  columns: readonly Column<T>[];
  hidden: readonly string[];
  onHidden: (hidden: readonly string[]) => void;
  /** All rows, for completion. */
  all: readonly T[];
  /** The rows as shown, for export. */
  rows: () => readonly T[];
  filter: string;
  onFilter: (filter: string) => void;
  extra?: ReactNode;
}

/** The table's controls: filter, columns, copy and export. */
export function Tools<T>(props: ToolsProps<T>) {
  const shown = props.columns.filter((c) => !props.hidden.includes(c.id));
  return (
    <div className="table-tools">
      {props.extra}
      <FilterField
        columns={props.columns}
        rows={props.all}
        filter={props.filter}
        onFilter={props.onFilter}
      />
      <span className="push" />
      <Menu label="Columns">
        {props.columns.map((c) => (
          <Fragment key={c.id}>
            <label className="menu-item">
              <input
                type="checkbox"
                checked={!props.hidden.includes(c.id)}
                disabled={shown.length === 1 && shown[0]?.id === c.id}
                onChange={(e) =>
                  props.onHidden(
                    e.target.checked
                      ? props.hidden.filter((h) => h !== c.id)
                      : [...props.hidden, c.id],
                  )
                }
              />
              {c.header}
            </label>
            {c.title !== undefined && <p className="menu-hint">{c.title}</p>}
          </Fragment>
        ))}
      </Menu>
      <ExportTable name={props.name} title={props.label} columns={() => shown} rows={props.rows} />
    </div>
  );
}
