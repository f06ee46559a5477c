import { useEffect, useState } from 'react';
import { useLive } from '../api/index.ts';
import { ago } from '../format/index.ts';

/** Milliseconds of Date.now, renewed every second while somebody wants to know. */
function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Says that the stream is cut and how old what is shown is; nothing while all is well. It covers nothing. */
export function LinkState() {
  const { link, heard, trouble } = useLive();
  const cut = link === 'cut';
  const now = useNow(cut);
  if (!cut && trouble === '') return null;
  return (
    <div className="link-state" role="status">
      {cut
        ? `reconnecting, data as of ${ago(Math.max(0, now - heard))}`
        : `the server says: ${trouble}`}
    </div>
  );
}
