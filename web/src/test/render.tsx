import { render, type RenderResult } from '@testing-library/react';
import type { ReactNode } from 'react';
import { vi } from 'vitest';
import { queryClient } from '../api/query.ts';
import { noSession, SessionContext, type Session } from '../api/session.ts';

/** Draws a view with a session, as if the frame had made it. */
export function renderIn(session: Partial<Session>, view: ReactNode): RenderResult {
  const whole = { ...noSession, run: 'r', link: 'open' as const, heard: Date.now(), ...session };
  return render(<SessionContext value={whole}>{view}</SessionContext>);
}

/** An answer of the server: a body, or a status with a body. */
export interface Reply {
  status?: number;
  body: unknown;
}

/**
 * Lets fetch answer by the begin of the path after api/v1/runs/r/; the longest begin
 * wins. What is not there is answered with 404. It returns the requests that were made.
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
    const found = Object.keys(replies)
      .filter((k) => rest.startsWith(k))
      .sort((a, b) => b.length - a.length)[0];
    const reply = found === undefined ? undefined : replies[found];
    if (!reply)
      return Promise.resolve(
        answer(404, { error: `nothing is at ${rest}`, hint: 'ask for something else' }),
      );
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
