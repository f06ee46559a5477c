import { useEffect, useState } from 'react';
import { useLive } from '../api/index.ts';
import { ago } from '../format/index.ts';

/** Date.now in milliseconds, updated every second while active. */
function useNow(active: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}

/** Reports a lost connection with the age of the data, or an error of the server. */
export function LinkState() {
  const { link, heard, trouble } = useLive();
  const cut = link === 'cut';
  const now = useNow(cut);
  if (!cut && trouble === '') return null;
  return (
    <div className="link-state" role="status">
      {cut
        ? `reconnecting, data as of ${ago(Math.max(0, now - heard))}`
        : `server error: ${trouble}`}
    </div>
  );
}
