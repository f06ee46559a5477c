import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { describe, expect, test } from 'vitest';
import { hasRank } from '../../format/index.ts';
import { Table, type Column } from '../table/index.ts';
import { FilterField } from './FilterField.tsx';
import { completions, matcher, mistake, parseTime } from './parse.ts';

interface Row {
  name: string;
  ranks: number[];
  host: string;
  kind: string;
  lost: number | undefined; // microseconds
  from: number; // seconds
}

const columns: Column<Row>[] = [
  { id: 'function', header: 'Function', value: (r) => r.name },
  {
    id: 'ranks',
    header: 'Ranks',
    match: (r, text) => r.ranks.some((n) => hasRank(text, n)),
    value: (r) => r.ranks.length,
  },
  { id: 'hosts', header: 'Hosts', value: (r) => r.host },
  { id: 'kind', header: 'Kind', value: (r) => r.kind },
  { id: 'lost', header: 'Lost', align: 'right', unit: 'us', value: (r) => r.lost },
  { id: 'first', header: 'First seen', unit: 's', value: (r) => r.from },
];

const rows: Row[] = [
  { name: 'std::sort', ranks: [0, 1], host: 'node01', kind: 'wait', lost: 9000, from: 12 },
  { name: 'write', ranks: [5], host: 'node01', kind: 'outlier', lost: 706_000, from: 95 },
  {
    name: 'solve it',
    ranks: [12, 13],
    host: 'node02',
    kind: 'outlier',
    lost: undefined,
    from: 200,
  },
];

const found = (filter: string) => rows.filter(matcher(columns, filter)).map((r) => r.name);

describe('a filter', () => {
  test.each<[string, string[]]>([
    ['', ['std::sort', 'write', 'solve it']],
    ['>10ms', ['write']],
    ['lost<10ms', ['std::sort']],
    ['lost>=9000', ['std::sort', 'write']],
    ['duration:8ms..1s', ['std::sort', 'write']],
    ['rank:5', ['write']],
    ['rank:0-5', ['std::sort', 'write']],
    ['ranks>1', ['std::sort', 'solve it']],
    ['host:node01 kind:outlier', ['write']],
    ['kind=out', []],
    ['-kind:outlier', ['std::sort']],
    ['first>1:30', ['write', 'solve it']],
    ['firstseen:00:01:00..2:00', ['write']],
    ['function:"solve it"', ['solve it']],
    ['std::sort', ['std::sort']],
    ['NODE01 wri', ['write']],
    ['-node01', ['solve it']],
    ['nonsense:3', []],
    ['kind:', ['std::sort', 'write', 'solve it']],
  ])('%s selects the right rows', (filter, want) => {
    expect(found(filter)).toEqual(want);
  });

  test('parses durations and times since the start', () => {
    expect(parseTime('10ms')).toBe(10_000);
    expect(parseTime('1.5 s')).toBe(1.5e6);
    expect(parseTime('250ns')).toBe(0.25);
    expect(parseTime('1:30')).toBe(90e6);
    expect(parseTime('01:00:00.5')).toBe(3600.5e6);
    expect(parseTime('soon')).toBeNaN();
    expect(parseTime('3parsecs')).toBeNaN();
  });

  test('names mistakes', () => {
    expect(mistake(columns, 'rank:3 >10ms std::sort')).toBeUndefined();
    expect(mistake(columns, 'nonsense:3')).toBe('no column “nonsense”');
    expect(mistake(columns, 'lost>much')).toBe('“much” is not a number or time');
    expect(mistake(columns.slice(0, 4), '>10ms')).toBe('this list has no durations');
  });

  test('completes columns, then values', () => {
    const labels = (filter: string) => completions(columns, rows, filter).map((c) => c.label);
    expect(labels('')).toEqual([
      'function:',
      'ranks>3',
      'hosts:',
      'kind:',
      'lost>10ms',
      'first>1:30',
    ]);
    expect(labels('write ho')).toEqual(['hosts:']);
    expect(labels('write host:')).toEqual(['node01', 'node02']);
    expect(completions(columns, rows, 'write host:02')[0]?.filter).toBe('write host:node02 ');
    expect(completions(columns, rows, 'function:sol')[0]?.filter).toBe('function:"solve it" ');
  });
});

function Field() {
  const [filter, setFilter] = useState('');
  return <FilterField columns={columns} rows={rows} filter={filter} onFilter={setFilter} />;
}

describe('the filter field', () => {
  test('completes by keyboard', async () => {
    render(<Field />);
    const field = screen.getByRole('combobox', { name: 'Filter rows' });
    await userEvent.type(field, 'ki{ArrowDown}{Enter}');
    expect(field).toHaveProperty('value', 'kind:');
    await userEvent.keyboard('{ArrowDown}{ArrowDown}');
    expect(screen.getByRole('option', { selected: true }).textContent).toContain('wait');
    await userEvent.keyboard('{Enter}');
    expect(field).toHaveProperty('value', 'kind:wait ');
    await userEvent.keyboard('bad>1');
    expect(screen.getByRole('alert').textContent).toBe('no column “bad”');
    expect(field.getAttribute('aria-invalid')).toBe('true');
  });

  test('of every table and its order are in the address', async () => {
    const show = () =>
      render(
        <Table name="mine" label="rows" columns={columns} rows={rows} rowKey={(r) => r.name} />,
      );
    const first = show();
    await userEvent.type(screen.getByRole('combobox'), '>1ms');
    await userEvent.click(screen.getByRole('button', { name: 'Lost' }));
    expect(location.hash).toContain('q.mine=%3E1ms');
    expect(location.hash).toContain('sort.mine=-lost');
    first.unmount();
    show();
    const shown = within(screen.getByRole('grid')).getAllByRole('row').slice(1);
    expect(shown.map((r) => within(r).getAllByRole('cell')[0]?.textContent)).toEqual([
      'write',
      'std::sort',
    ]);
  });
});
