import { useState } from 'react';
import { useLive } from '../api/index.ts';
import { useRoute } from '../route/index.ts';
import { copyText, Menu } from '../ui/index.ts';
import { ShareIcon } from './icons.tsx';
import { commands } from './commands.ts';

/** Copies a link to the view, or the commands that open it for someone without this page. */
export function Share() {
  const { overview } = useLive();
  const route = useRoute();
  const [status, setStatus] = useState('');
  const lines = commands(route, overview, location.port);
  const copy = (what: string, text: string) => {
    void copyText(text).then((ok) =>
      setStatus(ok ? `${what} copied` : 'copy failed: the browser blocks clipboard access'),
    );
  };
  return (
    <Menu
      label={
        <>
          <ShareIcon /> <span className="bar-word">Share</span>
        </>
      }
    >
      <button type="button" className="menu-item" onClick={() => copy('Link', location.href)}>
        Copy link <kbd>y</kbd>
      </button>
      <button
        type="button"
        className="menu-item"
        onClick={() => copy('Commands', lines.join('\n') + '\n')}
      >
        Copy for a colleague
      </button>
      <pre className="share-lines">{lines.join('\n')}</pre>
      <p role="status" className="muted small share-status">
        {status}
      </p>
    </Menu>
  );
}
