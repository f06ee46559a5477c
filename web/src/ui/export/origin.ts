/** The run and the version of the program, for captions. */
export function origin(run: string, version: string | undefined): string {
  return `run ${run}, Chimbuko${version === undefined ? '' : ` ${version}`}`;
}

/** A file name without extension that is valid everywhere. */
export function fileName(run: string, title: string): string {
  const name = `${run} ${title}`.replace(/[^\p{L}\p{N}.]+/gu, '-').replace(/^[-.]+|-+$/g, '');
  return name.slice(0, 100) || 'chimbuko';
}
