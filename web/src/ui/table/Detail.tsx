import { useEffect, useRef, type ReactNode } from 'react';

/** The expanded content below a row. It reports its height for scrolling. */
export function Detail(props: {
  columns: number;
  onHeight: (height: number) => void;
  children: ReactNode;
}) {
  const box = useRef<HTMLTableRowElement>(null);
  const notify = useRef(props.onHeight);
  useEffect(() => {
    notify.current = props.onHeight;
  });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const sizes = new ResizeObserver(() => notify.current(element.offsetHeight));
    sizes.observe(element);
    return () => sizes.disconnect();
  }, []);
  return (
    <tr className="detail" ref={box}>
      <td colSpan={props.columns}>{props.children}</td>
    </tr>
  );
}
