// Asking the server. All addresses are relative to the page, so that it works
// below the prefix of a proxy.

/** What the server said went wrong, or that it said nothing. */
export class Problem extends Error {
  readonly hint: string;
  /** Of HTTP; 0 if there was no answer. */
  readonly status: number;

  constructor(message: string, hint = '', status = 0) {
    super(message);
    this.name = 'Problem';
    this.hint = hint;
    this.status = status;
  }
}

/** Any error as a Problem. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(err instanceof Error ? err.message : String(err));
}

/** Values of parameters; what is undefined or empty is not sent, a list once for each. */
export type Params = Readonly<
  Record<string, string | number | boolean | readonly string[] | undefined>
>;

/** A path of the interface about a run: runPath('r', 'issues') is api/v1/runs/r/issues. */
export function runPath(run: string, path: string, params: Params = {}): string {
  const base = `api/v1/runs/${encodeURIComponent(run)}`;
  return withParams(path === '' ? base : `${base}/${path}`, params);
}

/** A path with parameters, in the order that they are given. */
export function withParams(path: string, params: Params): string {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) {
    for (const one of Array.isArray(v) ? (v as readonly string[]) : [v])
      if (one !== undefined && one !== '') query.append(k, String(one));
  }
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

/** Asks for JSON. It fails with a Problem, or with an AbortError if it was given up. */
export async function getJSON<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await ask(path, { signal: signal ?? null })) as T;
}

/** Sends JSON and gives the answer. */
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
      'the server does not answer',
      'is chimbuko still running, and the tunnel to it open? The page asks again by itself',
    );
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer.json();
}

async function problemOf(answer: Response): Promise<Problem> {
  try {
    const told = (await answer.json()) as { error?: string; hint?: string };
    if (typeof told.error === 'string')
      return new Problem(told.error, told.hint ?? '', answer.status);
  } catch {
    // Not JSON: something between us and the server answered.
  }
  return new Problem(
    `the answer was ${answer.status} ${answer.statusText}`.trim(),
    '',
    answer.status,
  );
}
