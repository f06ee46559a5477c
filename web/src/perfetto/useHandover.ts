import { useCallback, useEffect, useRef, useState } from 'react';
import { Handover, type Progress, type Trace } from './handover.ts';

/** A hand-over to Perfetto, which ends with the component. start must be called while a click or a key is handled. */
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
