import type { Finding } from '../../api/index.ts';
import {
  bare,
  clock,
  count,
  duration,
  names,
  pathParts,
  ranks,
  source,
} from '../../format/index.ts';
import { ended, endWords } from '../../ui/index.ts';

/** Escapes text for Markdown. */
function code(text: string): string {
  const ticks = '`'.repeat(Math.max(0, ...(text.match(/`+/g) ?? []).map((t) => t.length)) + 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return ticks + pad + text.replace(/\s+/g, ' ') + pad + ticks;
}

/** Formats a finding as Markdown for a ticket. */
export function findingMarkdown(i: Finding, run: string, link: string): string {
  const where = source(i.function);
  const lines = [
    `### Finding ${i.finding} of run ${code(run)}: ${i.function === '' ? i.kind : code(bare(i.function))}`,
    '',
    ended(i.summary.replace(/[\\<>*_[\]]/g, '\\$&')),
    '',
    `- Lost: ${duration(i.lost_us)} (${duration(i.lost_own_us)} own in ${count(i.calls)} calls, the longest ${duration(i.longest_us)}; ` +
      `${duration(i.lost_caused_us)} caused in ${count(i.waits ?? 0)} waits)`,
    `- Kind: ${i.kind}${i.trend ? `, trend ${i.trend}` : ''}, ${i.status}`,
    ...(i.late === undefined ? [] : [`- Late: ${i.late}`]),
    `- Where: ${i.rank_count === 0 ? 'all ranks' : `ranks ${ranks(i.ranks, 12)}`}${i.hosts.length === 0 ? '' : ` on ${names(i.hosts.map(code), 8)}`}${where === '' ? '' : `, ${code(where)}`}`,
    `- When: from ${clock(i.from_s)} since the start of the run, ${endWords(i, undefined)}`,
  ];
  if (i.call_path !== '')
    lines.push(`- Call path: ${pathParts(i.call_path).map(code).join(' > ')}`);
  if (i.label && i.label.note !== '')
    lines.push(`- Note (${i.label.state}): ${i.label.note.replace(/\s+/g, ' ')}`);
  if (i.example !== undefined) lines.push(`- Example: ${code(`chimbuko event RUN ${i.example}`)}`);
  lines.push(`- ${link}`, '');
  return lines.join('\n');
}
