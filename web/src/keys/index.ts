import { useEffect, useRef } from 'react';

// The keyboard. Mounted views register their keys; the ? sheet lists them.

/** What a key does. */
export interface Binding {
  /** A value of KeyboardEvent.key: j, Enter, ?, [. */
  key: string;
  /** Description on the sheet; keys with the same label share a line. */
  label: string;
  /** Heading on the sheet: Everywhere, Table, Timeline. */
  group: string;
  run: (event: KeyboardEvent) => void;
}

interface Entry {
  bindings: readonly Binding[];
}

const stack: Entry[] = [];

/** Reports whether the target takes text input. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  )
    return true;
  return (
    target instanceof HTMLInputElement &&
    !['checkbox', 'radio', 'button', 'range'].includes(target.type)
  );
}

/** Reports whether the browser handles the key: Enter on a link or button, arrows in a menu. */
function isHandled(event: KeyboardEvent): boolean {
  const { target } = event;
  if (event.key !== 'Enter' && event.key !== ' ') return false;
  return (
    target instanceof Element && target.closest('a, button, summary, [role="option"]') !== null
  );
}

function pressed(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key !== 'Escape' && (isTyping(event.target) || isHandled(event))) return;
  for (let i = stack.length - 1; i >= 0; i--) {
    const binding = stack[i]?.bindings.find((b) => b.key === event.key);
    if (binding) {
      event.preventDefault();
      binding.run(event);
      return;
    }
  }
}

/** Registers bindings until the returned function is called; later ones win. */
export function bind(bindings: readonly Binding[]): () => void {
  const entry = { bindings };
  if (stack.length === 0) window.addEventListener('keydown', pressed);
  stack.push(entry);
  return () => {
    stack.splice(stack.indexOf(entry), 1);
    if (stack.length === 0) window.removeEventListener('keydown', pressed);
  };
}

/** The active bindings, those of the view first. */
export function bindings(): Binding[] {
  const seen = new Set<string>();
  const all: Binding[] = [];
  for (const entry of [...stack].reverse()) {
    for (const b of entry.bindings) {
      if (b.label === '' || seen.has(b.key)) continue;
      seen.add(b.key);
      all.push(b);
    }
  }
  return all;
}

/**
 * Registers keys while a component is mounted. The keys must not change, their actions may. Keys without labels are not on the sheet.
 */
export function useKeys(list: readonly Binding[], active = true): void {
  const newest = useRef(list);
  useEffect(() => {
    newest.current = list;
  });
  useEffect(() => {
    if (!active) return;
    return bind(
      newest.current.map((b, i) => ({
        ...b,
        run: (event: KeyboardEvent) => newest.current[i]?.run(event),
      })),
    );
  }, [active]);
}
