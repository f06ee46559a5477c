import { useMemo, useState } from 'react';
import { count } from '../../format/index.ts';
import { copyText, saveText } from '../../ui/index.ts';

const mostShown = 200_000; // characters shown; more slows browsers down

/** The stored record, collapsed by default. */
export function RawRecord({ record, name }: { record: unknown; name: string }) {
  const [open, setOpen] = useState(false);
  const [status, setStatus] = useState('');
  const text = useMemo(() => (open ? JSON.stringify(record, null, 2) : ''), [open, record]);
  const file = `chimbuko-${name.replace(/[^\w-]+/g, '-')}.json`;
  return (
    <details className="evidence-more" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Stored record (JSON)</summary>
      {open && (
        <>
          <div className="raw-tools">
            <button
              type="button"
              className="button"
              onClick={() =>
                void copyText(text).then((ok) =>
                  setStatus(ok ? 'copied' : 'copy failed: the browser blocks clipboard access'),
                )
              }
            >
              Copy
            </button>
            <button
              type="button"
              className="button"
              onClick={() => saveText(file, text, 'application/json')}
            >
              Download
            </button>
            <span role="status" className="muted">
              {status}
            </span>
            {text.length > mostShown && (
              <span className="muted">
                The first {count(mostShown)} of {count(text.length)} characters shown; Copy and
                Download include all.
              </span>
            )}
          </div>
          {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- so that keys can scroll it */}
          <pre className="raw" tabIndex={0} aria-label="Stored record">
            {text.slice(0, mostShown)}
          </pre>
        </>
      )}
    </details>
  );
}
