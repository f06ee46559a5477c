import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test } from 'vitest';
import { renderIn, serve } from '../test/render.tsx';
import { offsetOf, parseExact, type Result } from './ask.ts';
import { axesOf, cellText, numeric, optionOf } from './chart.ts';
import { inserted, matching, nameInSQL, schema } from './schema.ts';
import { builtIn, examplesOf, literal } from './snippets.ts';
import SqlDrawer from './SqlDrawer.tsx';
import { asked, forget, remember, save, saved } from './storage.ts';
import { quoted } from '../format/index.ts';
import { asCommand, asCurl } from './words.ts';

const result: Result = {
  columns: [
    { name: 'func', type: 'string' },
    { name: 'n', type: 'int' },
    { name: 'lost', type: 'float' },
  ],
  rows: [
    ['<b>pack</b>', 3, 1.5],
    ['unpack', null, 2],
  ],
  cut: false,
  seconds: 0.01,
};

beforeEach(() => {
  localStorage.clear();
  location.hash = '';
});

describe('numbers in results', () => {
  test('keep every digit', () => {
    expect(
      parseExact(
        '[9007199254740993,-9007199254740993,1.5,12,"12",1e300,0.1234567890123456,1234567890123456,"a\\"b 9007199254740993"]',
      ),
    ).toEqual([
      '9007199254740993',
      '-9007199254740993',
      1.5,
      12,
      '12',
      1e300,
      0.1234567890123456,
      1234567890123456,
      'a"b 9007199254740993',
    ]);
  });
});

describe('the error position', () => {
  test('maps line and column to an offset, also after surrogate pairs', () => {
    expect(offsetOf('SELECT 1', 1, 8)).toBe(7);
    expect(offsetOf('SELECT a,\n  b\nFROM c', 2, 3)).toBe(12);
    expect(offsetOf("SELECT '🙂', b", 1, 13)).toBe(13);
    expect(offsetOf('SELECT', 9, 1)).toBe(6);
  });
});

describe('copying a statement', () => {
  const sql = `SELECT 'it''s' FROM "x" -- $(rm)`;

  test('quotes it for the shell', () => {
    expect(quoted("a'b")).toBe(`'a'\\''b'`);
    expect(asCommand("/data/it's/run", 'run', 'SELECT 1')).toBe(
      `chimbuko query '/data/it'\\''s/run' --run 'run' 'SELECT 1'`,
    );
    expect(asCommand(undefined, 'my run', sql)).toBe(
      `chimbuko query RUN --run 'my run' 'SELECT '\\''it'\\'''\\''s'\\'' FROM "x" -- $(rm)'`,
    );
  });

  test('builds a curl command with the address of the page, also behind a proxy prefix', () => {
    const line = asCurl('http://h:1/node/a/8080/?x#/findings', 'a/b', 'SELECT 1', 100);
    expect(line).toContain(`'http://h:1/node/a/8080/api/v1/runs/a%2Fb/sql'`);
    expect(line).toContain(`-d '{"sql":"SELECT 1","limit":100}'`);
    expect(line).toContain('Bearer TOKEN');
  });
});

describe('examples', () => {
  test('load from the documentation and use the current run', () => {
    const list = builtIn("o'brien");
    expect(list.length).toBeGreaterThan(15);
    expect(list.map((s) => s.name)).toContain('Which hosts lost most?');
    for (const s of list) {
      expect(s.sql).not.toContain('max(run)');
      expect(s.sql).not.toContain('```');
    }
    expect(list.find((s) => s.name === 'Which hosts lost most?')?.sql).toContain(
      "(SELECT run FROM runs WHERE name = 'o''brien')",
    );
  });

  test('are headings followed by a statement', () => {
    const text =
      '## Other\n### No\n```sql\nx\n```\n## Examples\n### One?\nText.\n```sql\nSELECT 1\n```\n### None\n';
    expect(examplesOf(text)).toEqual([{ name: 'One?', sql: 'SELECT 1' }]);
    expect(literal("a'b")).toBe("'a''b'");
  });
});

describe('the schema', () => {
  const all = schema.flatMap((g) => g.tables);

  test('lists the documented tables and views with typed columns', () => {
    expect(schema.map((g) => g.title)).toEqual([
      'Views',
      'Documents',
      'Tables',
      'Tables behind the views',
    ]);
    expect(all.length).toBeGreaterThan(35);
    const column = (table: string, name: string) =>
      all.find((t) => t.name === table)?.columns.find((c) => c.name === name);
    expect(column('normalexecs', 'rank')).toMatchObject({ name: 'rank', type: 'int' });
    expect(column('normalexecs', 'rank')?.meaning).toMatch(/^MPI rank\./); // from the terms
    expect(column('rollups', 'lost_us')?.type).toBe('int'); // as above
    expect(column('all_executions', 'func')?.meaning).toBe('name of the function');
    expect(column('findings', 'late')?.meaning).not.toMatch(/[`[]/);
    for (const t of all) expect(t.columns, t.name).not.toHaveLength(0);
    const untyped = all.flatMap((t) => t.columns.filter((c) => c.type === '').map((c) => c.name));
    expect(new Set(untyped)).toEqual(
      new Set([
        ...['call_stack', 'exec_window', 'comm_window', 'counter_events'],
        ...['gpu_location', 'gpu_parent_tid', 'gpu_parent_stack', 'gpu_parent_error'],
      ]),
    );
  });

  test('finds tables by their names and columns', () => {
    const found = matching(schema, ' Counter_Idx ').flatMap((g) => g.tables.map((t) => t.name));
    expect(found).toEqual(['counter_events']);
    expect(matching(schema, 'nosuch')).toEqual([]);
  });

  test('inserts names apart from other words, and quoted where needed', () => {
    expect(inserted('SELECT  FROM x', 7, 7, 'func')).toEqual({
      text: 'SELECT func FROM x',
      at: 11,
    });
    expect(inserted('SELECT a,FROM', 9, 9, 'b')).toEqual({ text: 'SELECT a, b FROM', at: 11 });
    expect(inserted('SELECT old', 7, 10, 'new')).toEqual({ text: 'SELECT new', at: 10 });
    expect(inserted('sum()', 4, 4, 'x')).toEqual({ text: 'sum(x)', at: 5 });
    expect(nameInSQL('timestamp')).toBe('"timestamp"');
    expect(nameInSQL('rank')).toBe('rank');
  });
});

describe('the statement history', () => {
  test('keeps each statement once, newest first, up to a limit', () => {
    for (let i = 0; i < 60; i++) remember(`SELECT ${i}`);
    remember('SELECT 58');
    expect(asked()[0]).toBe('SELECT 58');
    expect(asked()).toHaveLength(50);
    expect(asked().filter((s) => s === 'SELECT 58')).toHaveLength(1);
  });

  test('ignores malformed entries', () => {
    localStorage.setItem('chimbuko-sql-history', '{"a":1}');
    localStorage.setItem('chimbuko-sql-snippets', '[1,{"name":"a"},{"name":"b","sql":"x"}]');
    expect(asked()).toEqual([]);
    expect(saved()).toEqual([{ name: 'b', sql: 'x' }]);
    localStorage.setItem('chimbuko-sql-history', 'no JSON');
    expect(asked()).toEqual([]);
  });

  test('saves statements under a name and removes them', () => {
    save('b', '1');
    save('a', '2');
    save('b', '3');
    expect(saved()).toEqual([
      { name: 'a', sql: '2' },
      { name: 'b', sql: '3' },
    ]);
    forget('a');
    expect(saved().map((s) => s.name)).toEqual(['b']);
  });
});

describe('a chart of results', () => {
  const colors = { accent: '#fff' } as Parameters<typeof optionOf>[3];

  test('puts numbers on the y axis and another column on the x axis', () => {
    expect(numeric(result)).toEqual([1, 2]);
    expect(axesOf(result, '', '')).toEqual({ x: 0, y: 2 });
    expect(axesOf(result, 'n', 'lost')).toEqual({ x: 1, y: 2 });
    expect(axesOf(result, 'nosuch', 'func')).toEqual({ x: 0, y: 2 });
    expect(axesOf({ ...result, columns: result.columns.slice(0, 1) }, '', '')).toBeUndefined();
  });

  test('draws names as categories and numbers as values', () => {
    const bars = optionOf(result, 'bar', { x: 0, y: 1 }, colors) as {
      xAxis: { type: string; data: unknown[] };
      series: { data: unknown[] }[];
    };
    expect(bars.xAxis).toMatchObject({ type: 'category', data: ['<b>pack</b>', 'unpack'] });
    expect(bars.series[0]?.data).toEqual([3, undefined]);
    const points = optionOf(result, 'scatter', { x: 1, y: 2 }, colors) as typeof bars;
    expect(points.xAxis.type).toBe('value');
    expect(points.series[0]?.data).toEqual([
      [3, 1.5],
      [undefined, 2],
    ]);
  });

  test('formats all values as text', () => {
    expect([null, undefined, true, { a: 1 }, 'x', 2].map(cellText)).toEqual([
      '',
      '',
      'true',
      '{"a":1}',
      'x',
      '2',
    ]);
  });
});

describe('the drawer', () => {
  const editor = () => screen.getByRole<HTMLTextAreaElement>('textbox', { name: /SQL/ });

  test('runs with Ctrl Enter, shows the result as text and stores the statement in the address', async () => {
    location.hash = '#/findings?sql=--';
    const requests = serve({ sql: { body: result } });
    const { container } = renderIn({}, <SqlDrawer />);
    expect(editor().value).toBe('');
    await userEvent.type(editor(), ' SELECT 1 {Control>}{Enter}{/Control}');
    await screen.findByText('<b>pack</b>');
    expect(container.querySelector('td b')).toBeNull();
    expect(screen.getByText('2 rows in 0.01 s')).toBeTruthy();
    expect(requests).toEqual([
      { method: 'POST', path: 'api/v1/runs/r/sql', body: { sql: 'SELECT 1', limit: 1000 } },
    ]);
    expect(location.hash).toBe('#/findings?sql=SELECT+1');
    expect(asked()).toEqual(['SELECT 1']);
  });

  test('follows the statement in the address', async () => {
    location.hash = '#/overview?sql=SELECT+2&sqllimit=100';
    const requests = serve({ sql: { body: result } });
    renderIn({}, <SqlDrawer />);
    await screen.findByText('unpack');
    expect(editor().value).toBe('SELECT 2');
    expect(requests[0]?.body).toEqual({ sql: 'SELECT 2', limit: 100 });
    act(() => {
      location.hash = '#/overview?sql=SELECT+3';
      window.dispatchEvent(new HashChangeEvent('hashchange'));
    });
    await waitFor(() => expect(editor().value).toBe('SELECT 3'));
  });

  test('shows errors with a link to the position', async () => {
    location.hash = `#/overview?sql=${encodeURIComponent('SELECT func,\n  nosuch')}`;
    serve({
      sql: {
        status: 400,
        body: {
          error: 'a/provenance.duckdb: ask: Binder Error: no column',
          hint: 'docs/sql.md',
          line: 2,
          column: 3,
        },
      },
    });
    renderIn({}, <SqlDrawer />);
    expect((await screen.findByRole('alert')).textContent).toContain('Binder Error: no column');
    expect(screen.getByRole('alert').textContent).not.toContain('duckdb');
    await userEvent.click(screen.getByRole('button', { name: 'Go to line 2, column 3' }));
    expect(editor().selectionStart).toBe('SELECT func,\n  '.length);
  });

  test('reports truncated results', async () => {
    location.hash = '#/overview?sql=SELECT+2';
    serve({ sql: { body: { ...result, cut: true } } });
    renderIn({}, <SqlDrawer />);
    expect(await screen.findByText('first 2 rows of more, in 0.01 s')).toBeTruthy();
  });

  test('inserts names from the schema at the cursor', async () => {
    location.hash = '#/overview?sql=--&sqlschema=on';
    serve({});
    renderIn({}, <SqlDrawer />);
    await userEvent.type(editor(), 'SELECT ');
    await userEvent.click(screen.getByLabelText('Columns of messages'));
    const columns = screen.getByLabelText('messages');
    await userEvent.click(within(columns).getByText('timestamp'));
    expect(editor().value).toBe('SELECT "timestamp"');
    expect(document.activeElement).toBe(editor());
    await userEvent.keyboard(' FROM ');
    await userEvent.click(screen.getByText('messages', { selector: 'button' }));
    expect(editor().value).toBe('SELECT "timestamp" FROM messages');
    await userEvent.click(screen.getByText('Schema', { selector: 'button' }));
    expect(screen.queryByRole('region', { name: 'Schema' })).toBeNull();
    expect(location.hash).toContain('sqlschema=off');
  });

  test('offers examples that run with a click, and the documentation', async () => {
    location.hash = '#/overview?sql=--';
    const requests = serve({ sql: { body: result } });
    renderIn({}, <SqlDrawer />);
    const [first] = builtIn('r');
    const link = screen.getByRole<HTMLAnchorElement>('link', { name: 'Documentation' });
    expect(link.getAttribute('href')).toMatch(/sql.*\.md$/);
    const [, inPage] = screen.getAllByRole('button', { name: first?.name });
    if (inPage) await userEvent.click(inPage);
    await screen.findByText('unpack');
    expect(requests[0]?.body).toMatchObject({ sql: first?.sql });
  });

  test('browses the history with Alt and arrows', async () => {
    location.hash = '#/overview?sql=--';
    serve({});
    remember('SELECT 1');
    remember('SELECT 2');
    renderIn({}, <SqlDrawer />);
    const press = (key: string) => fireEvent.keyDown(editor(), { key, altKey: true });
    press('ArrowUp');
    expect(editor().value).toBe('SELECT 2');
    press('ArrowUp');
    press('ArrowUp');
    expect(editor().value).toBe('SELECT 1');
    press('ArrowDown');
    expect(editor().value).toBe('SELECT 2');
    await Promise.resolve();
  });

  test('saves and reruns statements', async () => {
    location.hash = '#/overview?sql=--';
    const requests = serve({ sql: { body: result } });
    renderIn({}, <SqlDrawer />);
    await userEvent.type(editor(), 'SELECT 7');
    await userEvent.click(screen.getByText(/^Saved/));
    await userEvent.type(screen.getByRole('textbox', { name: /Name/ }), 'seven{Enter}');
    await userEvent.clear(editor());
    await userEvent.click(screen.getByText(/^Saved/));
    await userEvent.click(screen.getByRole('button', { name: 'seven' }));
    await screen.findByText('unpack');
    expect(requests.at(-1)?.body).toMatchObject({ sql: 'SELECT 7' });
    await userEvent.click(screen.getByRole('button', { name: 'Remove seven' }));
    expect(saved()).toEqual([]);
  });

  test('closes with Escape', async () => {
    location.hash = '#/overview?sql=--';
    serve({});
    renderIn({}, <SqlDrawer />);
    await userEvent.keyboard('{Escape}');
    expect(location.hash).toBe('#/overview');
  });

  test('shows the refusal of the server', async () => {
    location.hash = '#/overview?sql=SELECT+1';
    serve({
      sql: {
        status: 429,
        body: { error: 'too many SQL queries', hint: 'try again in 3 s' },
      },
    });
    renderIn({}, <SqlDrawer />);
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).toContain('too many SQL queriestry again in 3 s.');
  });
});
