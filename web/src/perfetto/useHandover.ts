import { useCallback, useEffect, useRef, useState } from 'react';
import { Handover, type Progress, type Trace } from './handover.ts';

/** A handover to Perfetto that stops with the component. Call start from a click or key handler. */
export function useHandover(): [Progress, (get: () => Promise<Trace>) => void] {
  const [progress, set] = useState<Progress>({ at: 'idle' });
  const handover = useRef<Handover>(undefined);
  useEffect(() => () => handover.current?.stop(), []);
  const start = useCallback((get: () => Promise<Trace>) => {
    handover.current ??= new Handover(set);
    handover.current.start(get);
  }, []);
  return [progress, start];
}
