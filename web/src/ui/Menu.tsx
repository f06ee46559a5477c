import { useEffect, useRef, type ReactNode } from 'react';
import './ui.css';

/** A button that opens a few controls. Escape or a click elsewhere closes them. */
export function Menu(props: { label: ReactNode; title?: string; children: ReactNode }) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const away = (event: Event) => {
      const element = box.current;
      if (element?.open !== true) return;
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        element.querySelector('summary')?.focus();
      } else if (event.target instanceof Node && element.contains(event.target)) {
        return;
      }
      element.open = false;
    };
    document.addEventListener('pointerdown', away);
    document.addEventListener('keydown', away, true);
    return () => {
      document.removeEventListener('pointerdown', away);
      document.removeEventListener('keydown', away, true);
    };
  }, []);
  return (
    <details className="menu" ref={box}>
      <summary className="button quiet" title={props.title}>
        {props.label} <span aria-hidden="true">▾</span>
      </summary>
      <div className="menu-panel panel">{props.children}</div>
    </details>
  );
}
