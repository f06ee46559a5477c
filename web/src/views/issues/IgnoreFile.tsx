import { runPath, useLive } from '../../api/index.ts';

/** A file of settings that ignores the functions of what is muted or expected, for the next run. */
export function IgnoreFile({ hidden }: { hidden: number }) {
  const { run } = useLive();
  if (hidden === 0) return null;
  return (
    <a
      href={runPath(run, 'labels/ignore')}
      download="ignore.toml"
      title="Lines for a configuration file: how to ignore the functions of muted and expected issues in the next run"
    >
      download ignore file
    </a>
  );
}
