import { useState } from 'react';
import { copyText } from '../ui/index.ts';

/** The command that gives the same in a terminal. */
export function Command({ text }: { text: string }) {
  const [said, say] = useState('');
  return (
    <p className="explain-command">
      <span className="muted small" title="with --show-sql it prints the SQL that it asks">
        The same in a terminal
      </span>
      <code>{text}</code>
      <button
        type="button"
        className="button"
        onClick={() => {
          void copyText(text).then((ok) =>
            say(ok ? 'copied' : 'the browser does not let pages copy'),
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
