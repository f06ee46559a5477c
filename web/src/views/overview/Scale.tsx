import { useMemo } from 'react';
import type { Heatmap } from '../../api/index.ts';
import { ramp } from '../../color/index.ts';
import { count, duration } from '../../format/index.ts';
import { useTheme } from '../../theme/index.ts';
import { useAxisScale } from '../../ui/index.ts';

/** The color scale of a heatmap. */
export function Scale({ map }: { map: Heatmap }) {
  const theme = useTheme();
  const steps = useMemo(() => {
    const table = ramp(theme);
    return Array.from({ length: 24 }, (_, i) => {
      const at = Math.round((i / 23) * 255) * 3;
      return `rgb(${table[at] ?? 0} ${table[at + 1] ?? 0} ${table[at + 2] ?? 0})`;
    });
  }, [theme]);
  const word = map.metric !== 'anomalies' ? duration : count;
  const [scale] = useAxisScale();
  const faintest = map.metric !== 'anomalies' ? map.max / 1e4 : Math.max(1, map.max / 1e4);
  const least = scale === 'linear' ? 0 : faintest;
  return (
    <div className="scale">
      <span>{word(least)}</span>
      <svg width="96" height="8" aria-hidden="true">
        {steps.map((c, i) => (
          <rect key={i} x={i * 4} width="4" height="8" fill={c} />
        ))}
      </svg>
      <span>{word(map.max)}</span>
    </div>
  );
}
