// Writes SVG as text: elements made from text cannot be blocked by the page's policy for styles.

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Escapes text; characters that XML forbids become spaces. */
export function escape(text: string): string {
  return (
    text
      // eslint-disable-next-line no-control-regex -- XML has none of these
      .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, ' ')
      .replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)
  );
}

/** Rounds a number of pixels so that documents stay small. */
export function px(n: number): string {
  return String(Math.round(n * 100) / 100);
}

/** Returns an element; inside is markup. Attributes that are undefined are left out. */
export function tag(name: string, attributes: Attributes, inside = ''): string {
  let out = `<${name}`;
  for (const [k, v] of Object.entries(attributes)) {
    if (v !== undefined) out += ` ${k}="${escape(typeof v === 'number' ? px(v) : v)}"`;
  }
  return inside === '' ? `${out}/>` : `${out}>${inside}</${name}>`;
}
