import { kindWords } from '../color/index.ts';

/** A meaning in a few sentences, and the words that belong to it. */
export interface Meaning {
  text: string;
  words?: readonly (readonly [string, string])[];
}

const kindsOfFindings = [
  'outlier',
  'recurring',
  'change',
  'excess-work',
  'interference',
  'slow-peer',
  'wait',
];

const provisional =
  'Flagged with what was known at the time. The review at the end of the run confirms or withdraws it.';
const confirmed = 'Flagged during the run, and by the review of all calls at its end.';
const withdrawn =
  'Flagged during the run, but usual by the review of all calls at its end. Figures and findings do not count it.';

/** The meanings of terms on the page. */
export const terms = {
  own: { text: 'Time that the affected calls themselves took beyond what is usual for them.' },
  caused: {
    text: 'Time that other calls, mostly on other ranks, waited because of the affected calls.',
  },
  total: {
    text: 'Own and caused time together, summed over all ranks: what the finding costs the run.',
  },
  cost: {
    text: 'The time of a finding, summed over all ranks, is its own time and the time that it caused.',
    words: [
      ['own', 'beyond what is usual for the affected calls'],
      ['caused', 'in calls that waited because of them'],
    ],
  },
  'own time': { text: 'Time in the function itself, without the calls that it makes.' },
  inclusive: { text: 'Time from entry to exit, with the calls that it makes.' },
  rarity: {
    text: 'How unusual the time is by the model of the function; larger is rarer. The detector flags calls above its limit. Compare rarities only within a run: detectors have different scales.',
  },
  'own slowness': {
    text: 'Lost time except waits for other ranks. It shows where the causes are; lost time also shows who waited.',
  },
  kind: {
    text: 'What a finding is about:',
    words: kindsOfFindings.map((k) => [k, kindWords[k] ?? ''] as const),
  },
  interference: {
    text: 'Delays that hit whatever runs, in proportion to its time: the cause is outside of the functions, such as another process or the operating system.',
  },
  status: {
    text: 'How certain a finding is:',
    words: [
      ['provisional', provisional],
      ['confirmed', confirmed],
      ['withdrawn', withdrawn],
    ],
  },
  provisional: { text: provisional },
  confirmed: { text: confirmed },
  withdrawn: { text: withdrawn },
  'found at the end': {
    text: 'Not flagged during the run, but unusual by the review of all calls at its end. Tables and files name it promoted.',
  },
  final: { text: 'The run has ended, and all its calls were reviewed.' },
} as const satisfies Record<string, Meaning>;

export type TermName = keyof typeof terms;

/** Reports whether a term is explained. */
export function isTerm(name: string): name is TermName {
  return Object.hasOwn(terms, name);
}
