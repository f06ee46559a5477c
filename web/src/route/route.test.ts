import { act, renderHook } from '@testing-library/react';
import { describe, expect, test, vi } from 'vitest';
import {
  back,
  choice,
  eventPath,
  flag,
  follow,
  go,
  list,
  number,
  parse,
  splitEvent,
  text,
  useParam,
  write,
} from './index.ts';

describe('an address', () => {
  test('survives parsing and formatting', () => {
    for (const hash of [
      '#/overview',
      '#/findings?q=a+b&sel=7446d81c&sort=-lost',
      '#/e/0:1:27:7044?run=monday',
      '#/functions?program=1&t0=90&t1=120.5',
    ]) {
      expect(write(parse(hash))).toBe(hash);
    }
  });

  test('falls back to the overview', () => {
    for (const hash of ['', '#', '#/nonsense', '#?x', '#//', '#/%zz']) {
      expect(parse(hash).view, hash).toBe('overview');
    }
  });

  test('keeps hostile text unchanged', () => {
    const q = '<script>alert(1)</script>&sel=x#/e/1';
    expect(parse(write({ view: 'findings', event: '', query: { q } })).query).toEqual({ q });
    expect(parse('#/e/%E0%A4%A').event).toBe('%E0%A4%A');
  });

  test('prefixes events with the program', () => {
    expect(eventPath(2, '0:104:146579')).toBe('2:0:104:146579');
    expect(splitEvent('2:0:104:146579')).toEqual({ program: 2, event: '0:104:146579' });
    expect(splitEvent('nonsense')).toBeUndefined();
  });
});

describe('following a link', () => {
  test('to another view keeps only run, time range and filters', () => {
    const from = parse('#/findings?run=r&t0=1&rank=3&sel=x&sort=-lost');
    expect(write(follow(from, { view: 'functions' }))).toBe('#/functions?rank=3&run=r&t0=1');
  });

  test('within a view changes only the given parameters', () => {
    const from = parse('#/findings?run=r&sel=x&sort=-lost');
    expect(write(follow(from, { query: { sel: '', q: 'halo' } }))).toBe(
      '#/findings?q=halo&run=r&sort=-lost',
    );
  });

  test('to an event opens its evidence', () => {
    expect(write(follow(parse('#/findings?sel=x'), { event: '0:1:2:3' }))).toBe('#/e/0:1:2:3');
  });
});

describe('a step back', () => {
  test('never leaves the page', () => {
    const leave = vi.spyOn(history, 'back');
    location.hash = '#/findings?run=r';
    history.replaceState(null, '');
    back();
    expect(leave).not.toHaveBeenCalled();
    expect(location.hash).toBe('#/overview?run=r');
  });
});

describe('a parameter', () => {
  test('stores state in the address', () => {
    const codec = text('-lost');
    const { result } = renderHook(() => useParam('sort', codec));
    expect(result.current[0]).toBe('-lost');
    act(() => result.current[1]('count'));
    expect(result.current[0]).toBe('count');
    expect(location.hash).toBe('#/overview?sort=count');
    act(() => result.current[1]('-lost'));
    expect(location.hash).toBe('#/overview');
  });

  test('ignores invalid values', () => {
    expect(number.read('x')).toBeUndefined();
    expect(number.read('1.5')).toBe(1.5);
    expect(flag.read('yes')).toBe(false);
    expect(list.read('a,,b')).toEqual(['a', 'b']);
    expect(choice('lost', 'count').read('nonsense')).toBe('lost');
  });

  test('adds a history entry unless replaced', () => {
    const before = history.length;
    go({ query: { q: 'a' } });
    expect(history.length).toBe(before + 1);
    go({ query: { q: 'b' } }, true);
    expect(history.length).toBe(before + 1);
  });
});
