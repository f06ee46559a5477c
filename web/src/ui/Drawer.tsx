import { useEffect, useRef, type ReactNode } from 'react';
import './ui.css';

/** A sheet over the page, at the right or in the middle. Escape or a click outside closes it and restores the focus. */
export function Drawer(props: {
  title: string;
  onClose: () => void;
  middle?: boolean;
  children: ReactNode;
}) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    if (!dialog) return;
    if (typeof dialog.showModal === 'function') dialog.showModal();
    else dialog.setAttribute('open', '');
    return () => {
      if (typeof dialog.close === 'function') dialog.close();
    };
  }, []);
  return (
    // eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- Escape is the key
    <dialog
      ref={box}
      className={`drawer ${props.middle === true ? 'middle' : ''}`}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) props.onClose();
      }}
    >
      <div className="drawer-inside">
        <header className="drawer-head">
          <h2>{props.title}</h2>
          <button type="button" className="button quiet" onClick={props.onClose}>
            Close <kbd>Esc</kbd>
          </button>
        </header>
        <div className="drawer-body">{props.children}</div>
      </div>
    </dialog>
  );
}
