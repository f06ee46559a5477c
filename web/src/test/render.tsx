import { render, type RenderResult } from '@testing-library/react';
import type { ReactNode } from 'react';
import { vi } from 'vitest';
import { queryClient } from '../api/query.ts';
import { noSession, SessionContext, type Session } from '../api/session.ts';

/** Renders a view with a session. */
export function renderIn(session: Partial<Session>, view: ReactNode): RenderResult {
  const fullSession = {
    ...noSession,
    run: 'r',
    link: 'open' as const,
    heard: Date.now(),
    ...session,
  };
  return render(<SessionContext value={fullSession}>{view}</SessionContext>);
}

/** A response of the server. */
export interface Reply {
  status?: number;
  body: unknown;
}

/**
 * Stubs fetch by path prefix after api/v1/runs/r/; the longest prefix wins, other paths get 404. Returns the recorded requests.
 */
export function serve(
  replies: Readonly<Record<string, Reply>>,
): { method: string; path: string; body: unknown }[] {
  queryClient.clear();
  const requests: { method: string; path: string; body: unknown }[] = [];
  vi.stubGlobal('fetch', (path: string, init?: RequestInit) => {
    const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
    requests.push({ method: init?.method ?? 'GET', path, body });
    const rest = path.replace(/^api\/v1\/(runs\/r\/)?/, '');
    const prefix = Object.keys(replies)
      .filter((k) => rest.startsWith(k))
      .sort((a, b) => b.length - a.length)[0];
    const reply = prefix === undefined ? undefined : replies[prefix];
    if (!reply)
      return Promise.resolve(answer(404, { error: `not found: ${rest}`, hint: 'check the path' }));
    return Promise.resolve(answer(reply.status ?? 200, reply.body));
  });
  return requests;
}

function answer(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/json' },
  });
}
