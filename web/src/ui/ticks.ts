/** Steps between ticks of a time axis, in seconds. */
const steps = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
  1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
];

/** Returns the seconds between ticks so that a span has at most `most` ticks. */
export function timeStep(span: number, most: number): number {
  return steps.find((s) => span / s <= most) ?? Math.ceil(span / most / 86_400) * 86_400;
}

/** Returns at most `most` tick times between two times. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const step = timeStep(span, most);
  const ticks: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

/** Returns at most `most` round values between two values. */
export function linearTicks(from: number, to: number, most: number): number[] {
  const span = to - from;
  if (!(span > 0) || most < 1) return [];
  const power = 10 ** Math.floor(Math.log10(span / most));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => span / s <= most) ?? span;
  const ticks: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}
