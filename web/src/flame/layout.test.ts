import { describe, expect, test } from 'vitest';
import { flame, node } from '../test/fixtures/functions.ts';
import { cellsOf, levels, matchesName, neighbor, search, seenFrom, sums } from './layout.ts';

const cells = cellsOf(flame().root);
const cell = (name: string) => {
  const matches = cells.find((c) => c.node.function === name);
  if (!matches) throw new Error(`there is no ${name}`);
  return matches;
};

describe('cells', () => {
  test('are as wide as their time, inside their callers', () => {
    const at = (name: string) => [cell(name).left, cell(name).right].map((x) => x.toFixed(2));
    expect(at('all')).toEqual(['0.00', '1.00']);
    expect(at('exchange')).toEqual(['0.00', '0.60']);
    expect(at('MPI_Waitall()')).toEqual(['0.00', '0.50']);
    expect(at('update')).toEqual(['0.60', '0.90']);
  });

  test('use call paths as keys', () => {
    const again = cellsOf(flame().root);
    expect(again.map((c) => c.key)).toEqual(cells.map((c) => c.key));
    expect(new Set(cells.map((c) => c.key)).size).toBe(cells.length);
  });

  test('have no width without time', () => {
    const [root] = cellsOf(node('all', 0));
    expect(root && seenFrom(root, 800)).toHaveLength(1);
  });
});

describe('the visible cells', () => {
  test('are all cells at first', () => {
    const seen = seenFrom(cell('all'), 1000);
    expect(seen.map((s) => [s.cell.node.function, Math.round(s.x), Math.round(s.width)])).toEqual([
      ['all', 0, 1000],
      ['main', 0, 1000],
      ['exchange', 0, 600],
      ['MPI_Waitall()', 0, 500],
      ['update', 600, 300],
    ]);
  });

  test('zoom to a function below its callers', () => {
    const seen = seenFrom(cell('exchange'), 1000);
    expect(seen.map((s) => [s.cell.node.function, s.outer])).toEqual([
      ['all', true],
      ['main', true],
      ['exchange', false],
      ['MPI_Waitall()', false],
    ]);
    expect(seen.at(-1)?.width).toBeCloseTo(833.3, 1);
  });

  test('exclude cells too narrow to see', () => {
    expect(seenFrom(cell('all'), 1000, 400).map((s) => s.cell.node.function)).not.toContain(
      'update',
    );
  });

  test('are as high as the deepest path', () => {
    expect(levels(cell('all'))).toBe(4);
    expect(levels(cell('update'))).toBe(3);
  });
});

describe('searching', () => {
  test('counts nested matches once', () => {
    const root = node('all', 0, [node('f', 10, [node('g', 5, [node('f', 20)])]), node('h', 65)]);
    const matches = search(cellsOf(root), 'F');
    expect(matches.matches.size).toBe(2);
    expect(matches.time).toBe(35);
  });

  test('requires all words, in any order', () => {
    expect(matchesName('MPI_Waitall() [{a.c} {3,0}]', 'a.c mpi')).toBe(true);
    expect(matchesName('MPI_Waitall()', 'mpi send')).toBe(false);
    expect(matchesName('MPI_Waitall()', '  ')).toBe(false);
  });

  test('never matches the root', () => {
    expect(search(cells, 'all').matches.has(cell('all'))).toBe(false);
  });
});

describe('arrows', () => {
  const go = (from: string, key: string, focus = 'all') =>
    neighbor(cell(from), key, cell(focus))?.node.function;

  test('select callers, the largest callee and neighbors', () => {
    expect(go('exchange', 'ArrowUp')).toBe('main');
    expect(go('main', 'ArrowDown')).toBe('exchange');
    expect(go('exchange', 'ArrowRight')).toBe('update');
    expect(go('update', 'ArrowLeft')).toBe('exchange');
  });

  test('stop at the borders', () => {
    expect(go('all', 'ArrowUp')).toBeUndefined();
    expect(go('update', 'ArrowRight')).toBeUndefined();
    expect(go('update', 'ArrowDown')).toBeUndefined();
    expect(go('exchange', 'ArrowRight', 'exchange')).toBeUndefined();
  });

  test('cross over to callees of the next caller', () => {
    const tree = cellsOf(
      node('all', 0, [node('a', 1, [node('b', 1)]), node('c', 1, [node('d', 1)])]),
    );
    const [root, , b] = tree;
    expect(root && b && neighbor(b, 'ArrowRight', root)?.node.function).toBe('d');
  });
});

test('sums combine all call paths of a function', () => {
  const root = node('all', 0, [node('f', 10, [node('f', 20)]), node('g', 5, [node('f', 1)])]);
  const [f] = sums(cellsOf(root));
  expect(f).toMatchObject({ name: 'f', self: 31, total: 31, calls: 3 });
});
