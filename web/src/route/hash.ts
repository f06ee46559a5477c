// The address of the page. All view state is behind the #, as in #/findings?sel=KEY&t0=90. This file has no side effects.

/** The views, in the order of the rail and of the keys 1 to 9. */
export const views = [
  'overview',
  'findings',
  'evidence',
  'functions',
  'pipeline',
  'compare',
  'ranks',
  'gpus',
  'timeline',
] as const;

export type View = (typeof views)[number];

/** A view and its parameters. Empty parameters count as absent. */
export interface Route {
  view: View;
  /** Event of the evidence view, PROGRAM:RANK:STEP:ROW; empty in other views. */
  event: string;
  query: Readonly<Record<string, string>>;
}

/** Parameters that survive a change of the view. */
export const lasting = [
  ...['run', 'program', 'host', 'rank', 't0', 't1', 'scale'],
  ...['sql', 'sqllimit', 'sqlchart', 'sqlx', 'sqly', 'sqlschema'], // of the drawer that is below all views
] as const;

/** Parses an address from the # on. Invalid addresses lead to the overview. */
export function parse(hash: string): Route {
  const text = hash.replace(/^#/, '');
  const cut = text.indexOf('?');
  const path = (cut < 0 ? text : text.slice(0, cut)).split('/').filter((p) => p !== '');
  const query: Record<string, string> = {};
  if (cut >= 0) {
    for (const [k, v] of new URLSearchParams(text.slice(cut + 1))) if (v !== '') query[k] = v;
  }
  if (path[0] === 'e') return { view: 'evidence', event: decode(path[1] ?? ''), query };
  const view = views.find((v) => v === path[0]) ?? 'overview';
  return { view, event: '', query };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Formats an address from the # on. Equal routes have equal addresses. */
export function write(route: Route): string {
  const path =
    route.view === 'evidence' && route.event !== '' ? `e/${encodeEvent(route.event)}` : route.view;
  const query = new URLSearchParams();
  for (const k of Object.keys(route.query).sort()) {
    const v = route.query[k];
    if (v !== undefined && v !== '') query.set(k, v);
  }
  const text = query.toString().replaceAll('%3A', ':').replaceAll('%2C', ',');
  return `#/${path}${text === '' ? '' : `?${text}`}`;
}

function encodeEvent(event: string): string {
  return encodeURIComponent(event).replaceAll('%3A', ':');
}

/** Prefixes an event ID with the program, as in evidence addresses. */
export function eventPath(program: number, event: string): string {
  return `${program}:${event}`;
}

/** Splits PROGRAM:RANK:STEP:ROW; undefined if malformed. */
export function splitEvent(path: string): { program: number; event: string } | undefined {
  const m = /^(\d+):(.+)$/.exec(path);
  return m ? { program: Number(m[1]), event: m[2] ?? '' } : undefined;
}
