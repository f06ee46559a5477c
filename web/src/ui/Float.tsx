import './ui.css';

/** A box beside the pointer with a heading and lines of name and value. x, y and width are pixels of the enclosing box. */
export function Float(props: {
  x: number;
  y: number;
  width: number;
  heading: string;
  lines: readonly (readonly [string, string])[];
}) {
  const right = props.x > props.width / 2;
  return (
    <div
      className="float"
      style={{
        top: props.y + 14,
        ...(right ? { right: props.width - props.x + 10 } : { left: props.x + 14 }),
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
