import { useEffect, useState } from 'react';

/** The width of an element in pixels, which follows its size: give the function as its ref. 0 before it is shown. */
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
