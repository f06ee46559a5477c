// Requests to the server. All URLs are relative to the page, so that it works behind a proxy prefix.

/** An error from the server, or a failure to reach it. */
export class Problem extends Error {
  readonly hint: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;

  constructor(message: string, hint = '', status = 0) {
    super(message);
    this.name = 'Problem';
    this.hint = hint;
    this.status = status;
  }
}

/** Converts any error to a Problem. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(err instanceof Error ? err.message : String(err));
}

/** Query parameters. Undefined and empty values are not sent; a list repeats the parameter. */
export type Params = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>;

/** Returns the API path of a run: runPath('r', 'findings') is api/v1/runs/r/findings. */
export function runPath(run: string, path: string, params: Params = {}): string {
  const base = `api/v1/runs/${encodeURIComponent(run)}`;
  return withParams(path === '' ? base : `${base}/${path}`, params);
}

/** Appends query parameters to a path, in the given order. */
export function withParams(path: string, params: Params): string {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) {
    for (const one of Array.isArray(v) ? (v as readonly string[]) : [v])
      if (one !== undefined && one !== '') query.append(k, String(one));
  }
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Fetches JSON. Throws a Problem, or an AbortError when aborted. */
export async function getJSON<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, { signal: signal ?? null })) as T;
}

/** Sends JSON with PUT and returns the response. */
export async function putJSON<T>(path: string, body: unknown): Promise<T> {
  const init = {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  };
  return (await ask(path, init)) as T;
}

async function ask(path: string, init: RequestInit): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, credentials: 'same-origin' });
  } catch (err) {
    if (err instanceof DOMException && err.name === 'AbortError') throw err;
    throw new Problem(
      'cannot reach the server',
      'check that chimbuko is running and that the tunnel is open; the page retries automatically',
    );
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer.json();
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const body = (await answer.json()) as { error?: string; hint?: string };
    if (typeof body.error === 'string')
      return new Problem(body.error, body.hint ?? '', answer.status);
  } catch {
    // Not JSON: a proxy answered.
  }
  return new Problem(
    `the server returned ${answer.status} ${answer.statusText}`.trim(),
    '',
    answer.status,
  );
}
