// Names of functions, as TAU writes them: "void f(int) [{/home/me/f.cpp} {31,0}]".

const place = /\s*\[\{[^}]*\}(?:\s*\{[^}]*\}(?:-\{[^}]*\})?)?\]\s*/g;

/** The name without its source location. */
export function bare(name: string): string {
  const text = name.replace(place, ' ').trim();
  return text === '' ? name : text;
}

/** File and line of a name, or empty: heat2d.cpp:31. */
export function source(name: string): string {
  const m = /\[\{([^}]*)\}(?:\s*\{(\d+))?/.exec(name);
  if (!m) return '';
  const file = (m[1] ?? '').split('/').at(-1) ?? '';
  return m[2] === undefined ? file : `${file}:${m[2]}`;
}

/** Shortens text in the middle, counted in code points. */
export function elide(text: string, most = 48): string {
  const points = Array.from(text);
  if (points.length <= most) return text;
  const tail = Math.floor((most - 1) / 2);
  return points.slice(0, most - 1 - tail).join('') + '…' + points.slice(-tail).join('');
}

/** A shortened function name. */
export function shortName(name: string, most = 48): string {
  return elide(bare(name), most);
}

/** Splits a call path at " > ". Templates and operators have > without spaces. */
export function pathParts(path: string): string[] {
  return path === '' ? [] : path.split(' > ');
}

/** The end of a call path: … › time_step › pack_halo. */
export function pathTail(path: string | readonly string[], parts = 2, most = 24): string {
  const all = typeof path === 'string' ? pathParts(path) : path;
  const tail = all.slice(-parts).map((p) => shortName(p, most));
  return (all.length > parts ? '… › ' : '') + tail.join(' › ');
}
