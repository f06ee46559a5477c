import { act, renderHook, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { queryClient, useQuery } from './query.ts';

interface Reply {
  status?: number;
  body: unknown;
}

let replies: (Reply | Promise<Reply>)[] = [];
let signals: (AbortSignal | null | undefined)[] = [];

beforeEach(() => {
  queryClient.clear();
  signals = [];
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    signals.push(init.signal);
    const reply = await (replies.shift() ?? new Promise<Reply>(() => undefined));
    return new Response(JSON.stringify(reply.body), { status: reply.status ?? 200 });
  });
});

afterEach(() => vi.unstubAllGlobals());

describe('useQuery', () => {
  test('keeps the answer when a later request fails', async () => {
    replies = [{ body: { n: 1 } }, { status: 500, body: { error: 'no' } }];
    const { result } = renderHook(() => useQuery('a'));
    await waitFor(() => expect(result.current.data).toEqual({ n: 1 }));
    act(() => result.current.refresh());
    await waitFor(() => expect(result.current.problem?.message).toBe('no'));
    expect(result.current.data).toEqual({ n: 1 });
  });

  test('keeps the same object when the answer did not change', async () => {
    replies = [{ body: { rows: [1, 2] } }, { body: { rows: [1, 2] } }];
    const { result } = renderHook(() => useQuery('a'));
    await waitFor(() => expect(result.current.data).toBeDefined());
    const first = result.current.data;
    act(() => result.current.refresh());
    await waitFor(() => expect(replies).toHaveLength(0));
    await waitFor(() => expect(result.current.loading).toBe(false));
    expect(result.current.data).toBe(first);
  });

  test('reports a busy server while it retries', async () => {
    replies = [{ status: 503, body: { error: 'busy' } }];
    const { result } = renderHook(() => useQuery('a'));
    await waitFor(() => expect(result.current.problem?.message).toBe('busy'));
    expect(result.current.loading).toBe(false);
  });

  test('shows the previous answer until the next one arrives', async () => {
    replies = [{ body: 1 }];
    const { result, rerender } = renderHook(({ path }) => useQuery(path, { keep: true }), {
      initialProps: { path: 'a' },
    });
    await waitFor(() => expect(result.current.data).toBe(1));
    rerender({ path: 'b' });
    expect(result.current).toMatchObject({ data: 1, stale: true });
  });

  test('aborts the request when it is no longer shown', async () => {
    replies = [];
    const { unmount } = renderHook(() => useQuery('a'));
    await waitFor(() => expect(signals).toHaveLength(1));
    unmount();
    expect(signals[0]?.aborted).toBe(true);
  });

  test('fetches nothing without a path', () => {
    renderHook(() => useQuery(undefined));
    expect(signals).toHaveLength(0);
  });
});
