import { useState } from 'react';
import type { Column } from './column.ts';

function read(key: string): readonly string[] | undefined {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? 'null');
    return Array.isArray(kept) ? kept.filter((v): v is string => typeof v === 'string') : undefined;
  } catch {
    return undefined;
  }
}

/** The hidden columns, kept in local storage. */
export function useHidden<T>(
  name: string,
  columns: readonly Column<T>[],
): [readonly string[], (hidden: readonly string[]) => void] {
  const key = `chimbuko.columns.${name}`;
  const [chosen, set] = useState(() => read(key));
  const hidden = chosen ?? columns.filter((c) => c.hidden === true).map((c) => c.id);
  return [
    hidden,
    (next) => {
      set(next);
      try {
        localStorage.setItem(key, JSON.stringify(next));
      } catch {
        // Storage is forbidden: the choice holds until the page is left.
      }
    },
  ];
}
