import {
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  type ReactNode,
  type RefObject,
} from 'react';
import { terms, type Meaning, type TermName } from './terms.ts';
import './ui.css';

const room = 8; // pixels between the box and the borders of the window

/**
 * A term that explains itself when it is pressed, by mouse, touch or keyboard. Escape, a click elsewhere and scrolling close
 * the explanation. With mark, it is a question mark beside the term.
 */
export function Term(props: { name: TermName; mark?: boolean; children?: ReactNode }) {
  const { name, mark = false, children = name } = props;
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  return (
    <>
      <button
        type="button"
        ref={button}
        className={mark ? 'term-mark' : 'term'}
        aria-expanded={open}
        aria-describedby={open ? id : undefined}
        aria-label={mark ? `Explain ${name}` : undefined}
        onClick={(event) => {
          event.stopPropagation(); // rows of tables are selected by clicks
          setOpen(!open);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' || event.key === ' ') event.stopPropagation();
        }}
      >
        {mark ? '?' : children}
      </button>
      {open && <Box id={id} meaning={terms[name]} anchor={button} onClose={() => setOpen(false)} />}
    </>
  );
}

/** The explanation, above everything else on the page and beside its term. */
function Box(props: {
  id: string;
  meaning: Meaning;
  anchor: RefObject<HTMLElement | null>;
  onClose: () => void;
}) {
  const { meaning, anchor, onClose } = props;
  const box = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !anchor.current) return;
    if (typeof element.showPopover === 'function') element.showPopover();
    const at = anchor.current.getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: tall } = element;
    const left = Math.max(room, Math.min(at.left, window.innerWidth - wide - room));
    const below = at.bottom + 4;
    const top = below + tall + room > window.innerHeight ? at.top - tall - 4 : below;
    element.style.left = `${left}px`;
    element.style.top = `${Math.max(room, top)}px`;
  }, [anchor]);
  const close = useRef(onClose);
  useEffect(() => {
    close.current = onClose;
  });
  useEffect(() => {
    const start = anchor.current?.getBoundingClientRect();
    const moved = () => {
      const now = anchor.current?.getBoundingClientRect();
      return now?.top !== start?.top || now?.left !== start?.left;
    };
    const away = (event: Event) => {
      if (event.type === 'scroll' && !moved()) return; // of something else, or before it opened
      const inside = event.target instanceof Node && box.current?.contains(event.target) === true;
      const own = event.target instanceof Node && anchor.current?.contains(event.target) === true;
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        event.stopPropagation();
        anchor.current?.focus();
      } else if (inside || own) {
        return;
      }
      close.current();
    };
    const happenings = ['pointerdown', 'keydown', 'scroll', 'focusin'] as const;
    for (const h of happenings) document.addEventListener(h, away, true);
    window.addEventListener('resize', away);
    return () => {
      for (const h of happenings) document.removeEventListener(h, away, true);
      window.removeEventListener('resize', away);
    };
  }, [anchor]);
  return (
    <span ref={box} id={props.id} className="term-box" popover="manual" role="status">
      {meaning.text}
      {meaning.words?.map(([word, text]) => (
        <span key={word} className="term-word">
          <b>{word}</b>: {text}
        </span>
      ))}
    </span>
  );
}
