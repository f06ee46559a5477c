import { bytes, bare, duration, short, source } from '../format/index.ts';
import type { Hit } from './find.ts';
import { ownTime } from './find.ts';
import type { Box, Layout, Link } from './layout.ts';

/** Formats a time relative to the entry: +4.71 ms. */
export function after(us: number): string {
  return us > 0 ? `+${duration(us)}` : duration(us);
}

/** Describes a message or a launch. */
export function linkHeading(link: Link): string {
  const { arrow } = link;
  if (arrow.kind === 'launch') return 'kernel launch';
  return arrow.kind === 'receive'
    ? `message from rank ${arrow.partner}`
    : `message to rank ${arrow.partner}`;
}

/** Labels of the sections' executions. */
export function selfWords(box: Box): string {
  if (box.section === 'this') return 'this execution';
  return box.section === 'twin' ? 'normal execution' : 'related execution';
}

export interface Words {
  heading: string;
  lines: readonly (readonly [string, string])[];
}

/** The tooltip of a hit, if it has one. */
export function hitWords(placement: Layout, hit: Hit): Words | undefined {
  if (hit.box) {
    const { box } = hit;
    const { call } = box;
    const lines: [string, string][] = [];
    const place = source(call.function);
    if (place !== '') lines.push(['in', place]);
    const open = call.open === true;
    lines.push([open ? 'at least' : 'duration', duration(box.exit - box.enter)]);
    if (!open) lines.push(['itself', duration(ownTime(placement, box))]);
    lines.push(['entered', after(box.enter)]);
    if (box.folded > 0) lines.push(['callers', `${box.folded} enclosing callers`]);
    if (open) lines.push(['state', 'not ended']);
    if (call.self === true) lines.push(['type', selfWords(box)]);
    else if (call.anomaly === true) lines.push(['judged', 'another anomaly']);
    return { heading: clip(bare(call.label ?? call.function)), lines };
  }
  if (hit.link) {
    const { arrow, from, to } = hit.link;
    const lines: [string, string][] = [];
    if (arrow.kind === 'launch') lines.push(['waited', duration(to - from)]);
    else {
      lines.push(['size', bytes(arrow.bytes ?? 0)], ['tag', String(arrow.tag ?? 0)]);
    }
    lines.push(['at', after(arrow.kind === 'receive' ? to : from)]);
    return { heading: linkHeading(hit.link), lines };
  }
  if (hit.marks) {
    const lines = hit.marks.slice(0, 8).map(({ counter }): [string, string] => {
      const usual = counter.mean === undefined ? '' : `, usually ${short(counter.mean)}`;
      return [clip(counter.name), short(counter.value) + usual];
    });
    return { heading: `counters at ${after(hit.marks[0]?.at ?? 0)}`, lines };
  }
  return undefined;
}

function clip(text: string): string {
  return text.length > 90 ? `${text.slice(0, 89)}…` : text;
}
