import './ui.css';

const narrow = 420; // pixels in which a box does not fit on either side of the pointer

/** A box beside the pointer with a heading and lines of name and value. x, y and width are pixels of the enclosing box. */
export function Float(props: {
  x: number;
  y: number;
  width: number;
  heading: string;
  lines: readonly (readonly [string, string])[];
}) {
  const right = props.x > props.width / 2;
  const side = right ? { right: props.width - props.x + 10 } : { left: props.x + 14 };
  return (
    <div
      className="float"
      style={{
        top: props.y + 14,
        ...(props.width < narrow ? { left: 0 } : side),
      }}
    >
      <strong>{props.heading}</strong>
      {props.lines.map(([name, value]) => (
        <div key={name} className="float-line">
          <span>{name}</span>
          <span>{value}</span>
        </div>
      ))}
    </div>
  );
}
