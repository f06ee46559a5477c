import { useState } from 'react';
import { copyText } from '../ui/index.ts';

/** The equivalent terminal command. */
export function Command({ text }: { text: string }) {
  const [said, say] = useState('');
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
            say(ok ? 'copied' : 'copy failed: the browser blocks clipboard access'),
          );
        }}
      >
        Copy
      </button>
      <span role="status" className="muted small">
        {said}
      </span>
    </p>
  );
}
