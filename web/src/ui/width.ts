import { useEffect, useState } from 'react';

/** Tracks the width of an element in pixels; pass the function as its ref. 0 before layout. */
export function useWidth(): [(element: Element | null) => void, number] {
  const [element, setElement] = useState<Element | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return;
    const measure = () => setWidth(element.clientWidth);
    const sizes = new ResizeObserver(measure);
    sizes.observe(element);
    measure();
    return () => sizes.disconnect();
  }, [element]);
  return [setElement, width];
}
