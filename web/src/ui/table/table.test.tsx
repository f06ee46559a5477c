import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test, vi } from 'vitest';
import { asCSV, asMarkdown, asTSV } from './column.ts';
import { Table, type Column, type TableProps } from './index.ts';
import { windowOf } from './window.ts';

interface Row {
  name: string;
  lost: number | undefined;
}

const columns: Column<Row>[] = [
  { id: 'name', header: 'Function', value: (r) => r.name },
  { id: 'lost', header: 'Lost', align: 'right', value: (r) => r.lost },
  { id: 'twice', header: 'Twice', hidden: true, value: (r) => (r.lost ?? 0) * 2 },
];

const rows: Row[] = [
  { name: 'pack', lost: 5 },
  { name: '<script>alert(1)</script>', lost: 50 },
  { name: 'unpack', lost: undefined },
];

function show(part: Partial<TableProps<Row>> = {}) {
  return render(
    <Table name="t" label="rows" columns={columns} rows={rows} rowKey={(r) => r.name} {...part} />,
  );
}

const names = () =>
  within(screen.getByRole('grid'))
    .getAllByRole('row')
    .slice(1)
    .map((r) => within(r).getAllByRole('cell')[0]?.textContent);

describe('a table', () => {
  test('sorts numbers descending, then ascending, with unknown values last', async () => {
    show();
    await userEvent.click(screen.getByRole('button', { name: 'Lost' }));
    expect(names()).toEqual(['<script>alert(1)</script>', 'pack', 'unpack']);
    expect(screen.getByRole('columnheader', { name: 'Lost' }).getAttribute('aria-sort')).toBe(
      'descending',
    );
    await userEvent.click(screen.getByRole('button', { name: 'Lost' }));
    expect(names()).toEqual(['pack', '<script>alert(1)</script>', 'unpack']);
  });

  test('filters by words and reports no matches', async () => {
    show();
    const box = screen.getByRole('combobox', { name: 'Filter rows' });
    await userEvent.type(box, 'PACK un');
    expect(names()).toEqual(['unpack']);
    expect(screen.getByText('1 of 3 rows')).toBeTruthy();
    await userEvent.type(box, 'zzz');
    expect(screen.getByText('None of 3 rows matches “PACK unzzz”.')).toBeTruthy();
  });

  test('shows names of traces as text', () => {
    const { container } = show();
    expect(screen.getByText('<script>alert(1)</script>')).toBeTruthy();
    expect(container.querySelector('script')).toBeNull();
  });

  test('remembers the selected columns', async () => {
    const { unmount } = show();
    expect(screen.queryByRole('columnheader', { name: 'Twice' })).toBeNull();
    await userEvent.click(screen.getByText(/Columns/));
    await userEvent.click(screen.getByRole('checkbox', { name: 'Twice' }));
    expect(screen.getByRole('columnheader', { name: 'Twice' })).toBeTruthy();
    unmount();
    show();
    expect(screen.getByRole('columnheader', { name: 'Twice' })).toBeTruthy();
  });

  test('handles j, k and Enter wherever the focus is', async () => {
    const onOpen = vi.fn();
    show({ main: true, onOpen });
    await userEvent.keyboard('jj');
    expect(screen.getAllByRole('row')[2]?.getAttribute('aria-selected')).toBe('true');
    await userEvent.keyboard('k{Enter}');
    expect(onOpen).toHaveBeenCalledExactlyOnceWith(rows[0]);
  });

  test('ignores letters typed into an input', async () => {
    const onSelect = vi.fn();
    show({ main: true, onSelect });
    await userEvent.type(screen.getByRole('combobox'), 'jk');
    expect(onSelect).not.toHaveBeenCalled();
  });

  test('folds rows under others', async () => {
    const victim = { name: 'victim', lost: 1 };
    show({ children: (r) => (r.name === 'pack' ? [victim] : undefined) });
    expect(screen.queryByText('victim')).toBeNull();
    await userEvent.click(screen.getByRole('button', { name: 'unfold' }));
    expect(screen.getByText('victim')).toBeTruthy();
  });

  test('draws only visible rows of ten thousand', () => {
    const many = Array.from({ length: 10_000 }, (_, i) => ({ name: `rank ${i}`, lost: i }));
    show({ rows: many });
    const drawn = screen.getAllByRole('row').length;
    expect(drawn).toBeGreaterThan(20);
    expect(drawn).toBeLessThan(80);
    expect(screen.getByRole('grid').getAttribute('aria-rowcount')).toBe('10001');
  });
});

describe('exported rows', () => {
  const odd: Row[] = [{ name: 'a|b\t`c`\n<d>', lost: 1 }];

  test('keep their cells as TSV', () => {
    expect(asTSV(columns.slice(0, 2), odd)).toBe('Function\tLost\na|b `c` <d>\t1\n');
  });

  test('escape Markdown', () => {
    expect(asMarkdown(columns.slice(0, 2), odd)).toBe(
      '| Function | Lost |\n| --- | ---: |\n| a\\|b \\`c\\` \\<d\\> | 1 |\n',
    );
  });

  test('quote CSV and neutralize formulas', () => {
    const cells = [
      { name: '=cmd|"x"', lost: -1 },
      { name: 'a,b', lost: undefined },
    ];
    expect(asCSV(columns.slice(0, 2), cells)).toBe(
      'Function,Lost\r\n"\'=cmd|""x""",-1\r\n"a,b",\r\n',
    );
  });
});

describe('the window of a long table', () => {
  test('reserves room for unfolded details', () => {
    const w = windowOf(1000, 28 * 500, 280, 28, new Map([[10, 300]]), 0);
    expect(w.before).toBe(w.first * 28 + 300);
    expect(w.before + (w.end - w.first) * 28 + w.after).toBe(1000 * 28 + 300);
    expect(w.before).toBeLessThanOrEqual(28 * 500);
  });

  test('ends with the last row', () => {
    expect(windowOf(1000, 28 * 1000 - 280, 280, 28, new Map()).end).toBe(1000);
    expect(windowOf(0, 0, 280, 28, new Map())).toEqual({ first: 0, end: 0, before: 0, after: 0 });
  });
});
