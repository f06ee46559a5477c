import { choice, useParam } from '../route/index.ts';
import { Segmented } from './Segmented.tsx';

export type AxisScale = 'log' | 'linear';

const param = choice('log', 'linear');

const choices = [
  ['log', 'logarithmic'],
  ['linear', 'linear'],
] as const;

/** The scale of all charts that span orders of magnitude; the address has it. */
export function useAxisScale(): [AxisScale, (scale: AxisScale) => void] {
  return useParam('scale', param);
}

/** Chooses the scale, and labels the chart with it. */
export function ScaleChoice({ of }: { of: string }) {
  const [scale, setScale] = useAxisScale();
  return (
    <Segmented
      small
      label={`Scale of ${of}`}
      choices={choices}
      chosen={scale}
      onChoose={setScale}
    />
  );
}
