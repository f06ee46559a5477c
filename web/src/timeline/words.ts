import { bytes, bare, duration, short, source } from '../format/index.ts';
import type { Hit } from './find.ts';
import { ownTime } from './find.ts';
import type { Box, Layout, Link } from './layout.ts';

/** A time relative to the entry: +4.71 ms. */
export function after(us: number): string {
  return us > 0 ? `+${duration(us)}` : duration(us);
}

/** What a message or a launch is, in words. */
export function linkHeading(link: Link): string {
  const { arrow } = link;
  if (arrow.kind === 'launch') return 'launch of the kernel';
  return arrow.kind === 'receive'
    ? `message from rank ${arrow.partner}`
    : `message to rank ${arrow.partner}`;
}

/** What an execution is that a section is about. */
export function selfWords(box: Box): string {
  if (box.section === 'this') return 'the execution that is shown';
  return box.section === 'twin' ? 'the normal execution' : 'the other execution';
}

export interface Words {
  heading: string;
  lines: readonly (readonly [string, string])[];
}

/** What is told of what is pointed at; undefined: nothing. */
export function hitWords(made: Layout, hit: Hit): Words | undefined {
  if (hit.box) {
    const { box } = hit;
    const { call } = box;
    const lines: [string, string][] = [];
    const place = source(call.function);
    if (place !== '') lines.push(['in', place]);
    const open = call.open === true;
    lines.push([open ? 'at least' : 'duration', duration(box.exit - box.enter)]);
    if (!open) lines.push(['itself', duration(ownTime(made, box))]);
    lines.push(['entered', after(box.enter)]);
    if (box.folded > 0) lines.push(['callers', `${box.folded} more around it`]);
    if (open) lines.push(['state', 'it had not ended']);
    if (call.self === true) lines.push(['this is', selfWords(box)]);
    else if (call.anomaly === true) lines.push(['judged', 'an anomaly, too']);
    return { heading: clip(bare(call.function)), lines };
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
