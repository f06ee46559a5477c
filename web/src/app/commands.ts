import type { Overview } from '../api/index.ts';
import { shellWord } from '../format/index.ts';
import { write, type Route } from '../route/index.ts';

/** The arguments of chimbuko view that open a route. */
function part(route: Route): string[] {
  const query = Object.keys(route.query).length;
  if (route.view === 'evidence' && route.event !== '' && query === 0)
    return ['--event', route.event];
  const at = write(route).replace('#/', '');
  return at === 'overview' ? [] : ['--at', at];
}

/**
 * The commands that show a colleague the same part of the page: one on the machine of the page, and one over ssh. The port of a
 * run is always the same.
 */
export function commands(
  route: Route,
  overview: Overview | undefined,
  port: string,
): readonly string[] {
  const view = ['chimbuko', 'view', overview?.place ?? 'RUN', ...part(route)]
    .map(shellWord)
    .join(' ');
  const host = overview?.host ?? '';
  if (host === '' || port === '') return [view];
  return [view, `ssh -t -L ${port}:localhost:${port} ${shellWord(host)} ${shellWord(view)}`];
}
