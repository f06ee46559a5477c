import type { Evidence } from '../../api/index.ts';
import { clock, duration, shortName } from '../../format/index.ts';
import type { Section } from '../../timeline/index.ts';

/** A related execution shown on the timeline. */
export interface Companion {
  event: string;
  program: number;
  /** Its role. */
  role: 'culprit' | 'victim';
}

const mostVictims = 2;

/** Returns the culprit of an execution, or its worst victims. */
export function companionsOf(e: Evidence): Companion[] {
  const { culprit, victims } = e.roles;
  if (culprit) return [{ event: culprit.event_id, program: culprit.program, role: 'culprit' }];
  return victims
    .slice(0, mostVictims)
    .map((v) => ({ event: v.event_id, program: v.program, role: 'victim' }));
}

/** Maximum distance of executions drawn together, in microseconds. */
const farthest = 60e6;

/**
 * The sections of the timeline: the execution, related ones at their times, and a normal one aligned by entry.
 */
export function sectionsOf(
  e: Evidence,
  companions: readonly { role: Companion['role']; evidence: Evidence }[],
): Section[] {
  const list: Section[] = [
    {
      id: 'this',
      heading: '',
      lanes: e.lanes,
      arrows: e.arrows,
      counters: e.counters,
      shift: 0,
      program: e.program,
      rank: e.rank,
    },
  ];
  for (const { role, evidence: o } of companions) {
    const shift = Math.round((o.at_s - e.at_s) * 1e6);
    if (Math.abs(shift) > farthest || (o.rank === e.rank && o.program === e.program)) continue;
    const words = role === 'culprit' ? 'cause of the wait' : 'waited for it';
    const host = o.host === '' ? '' : ` (${o.host})`;
    list.push({
      id: `${o.program}:${o.event_id}`,
      heading: `${words}: ${shortName(o.function, 36)} on rank ${o.rank}${host}, ${duration(o.exclusive_us)}`,
      lanes: o.lanes.slice(0, 1),
      arrows: [],
      counters: [],
      shift,
      program: o.program,
      rank: o.rank,
    });
  }
  if (e.twin) {
    const t = e.twin;
    const host = t.host === '' ? '' : ` (${t.host})`;
    list.push({
      id: 'twin',
      heading: `normal execution: ${duration(t.exclusive_us)} on rank ${t.rank}${host} at ${clock(t.at_s, 1)}`,
      lanes: t.lanes,
      arrows: t.arrows,
      counters: [],
      shift: 0,
      program: e.program,
      rank: t.rank,
    });
  }
  return list;
}
