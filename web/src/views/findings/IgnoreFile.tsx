import { runPath, useLive } from '../../api/index.ts';

/** Downloads settings that ignore muted and expected functions in the next run. */
export function IgnoreFile({ hidden }: { hidden: number }) {
  const { run } = useLive();
  if (hidden === 0) return null;
  return (
    <a
      href={runPath(run, 'labels/ignore')}
      download="ignore.toml"
      title="Configuration that ignores the functions of muted and expected findings in the next run"
    >
      download ignore file
    </a>
  );
}
