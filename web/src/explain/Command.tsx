import { useState } from 'react';
import { copyText } from '../ui/index.ts';

/** The equivalent terminal command. */
export function Command({ text }: { text: string }) {
  const [status, setStatus] = useState('');
  return (
    <p className="explain-command">
      <span className="muted small" title="add --show-sql to print the SQL">
        In a terminal
      </span>
      <code>{text}</code>
      <button
        type="button"
        className="button"
        onClick={() => {
          void copyText(text).then((ok) =>
            setStatus(ok ? 'copied' : 'copy failed: the browser blocks clipboard access'),
          );
        }}
      >
        Copy
      </button>
      <span role="status" className="muted small">
        {status}
      </span>
    </p>
  );
}
