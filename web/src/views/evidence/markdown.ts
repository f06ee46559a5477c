import type { Arrow, Evidence } from '../../api/index.ts';
import {
  bare,
  bytes,
  clock,
  code,
  count,
  duration,
  micro,
  prose,
  source,
} from '../../format/index.ts';
import { flaggedWords, usualWords } from '../../histogram/index.ts';
import { sentence } from '../../ui/index.ts';
import { difference } from './difference.ts';

/** Summarizes the sizes of messages: 2.0 kB and 1 of unknown size. */
export function sizeWords(messages: readonly Arrow[]): string {
  const sizes = messages.flatMap((a) => (a.bytes === undefined ? [] : [a.bytes]));
  const unknown = messages.length - sizes.length;
  const sum = bytes(sizes.reduce((n, size) => n + size, 0));
  if (unknown === 0) return sum;
  return sizes.length === 0 ? 'of unknown size' : `${sum} and ${unknown} of unknown size`;
}

/** Formats an execution as Markdown for a ticket. */
export function evidenceMarkdown(e: Evidence, run: string, link: string): string {
  const place = source(e.function);
  const { model, roles } = e;
  const apart = difference(e);
  const lines = [
    `### ${code(bare(e.function))} on rank ${e.rank} of run ${code(run)}`,
    '',
    `${prose(micro(e.sentence))}.`,
    '',
    `- Event: ${code(e.event_id)}${e.status ? `, ${e.status}` : ''}${e.kind ? `, ${e.kind}` : ''}`,
    `- Where: rank ${e.rank}, thread ${e.thread}${e.host === '' ? '' : ` on ${code(e.host)}`}${place === '' ? '' : `, ${code(place)}`}`,
    `- When: ${clock(e.at_s, 1)} since the start of the run (${e.entered})`,
    `- Lost: ${duration(e.lost_us)}; own time ${duration(e.exclusive_us)}, inclusive ${duration(e.inclusive_us)}`,
  ];
  if (e.why) lines.push(`- Why: it ${prose(micro(e.why))}`);
  if (model) {
    lines.push(
      `- Model: ${model.algorithm}, usual ${usualWords(model)}, ${count(model.samples)} samples, flagged ${flaggedWords(model)}${model.warming ? ', warming up' : ''}`,
    );
  }
  if (roles.sentence) lines.push(`- ${sentence(prose(roles.sentence))}`);
  if (apart) lines.push(`- ${prose(apart.sentence)}`);
  const sent = e.arrows.filter((a) => a.kind !== 'launch');
  if (sent.length > 0) {
    lines.push(`- Messages: ${sent.length}, ${sizeWords(sent)}`);
  }
  lines.push(
    `- Call path: ${e.call_path.map((f) => code(bare(f))).join(' > ')}`,
    `- ${code(`chimbuko event RUN ${e.event_id}`)}`,
    `- ${link}`,
    '',
  );
  return lines.join('\n');
}
