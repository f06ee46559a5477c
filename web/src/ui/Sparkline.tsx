import './ui.css';

/** A tiny bar chart of non-negative values; the label describes it. */
export function Sparkline(props: {
  values: readonly number[];
  /** The part of the width that the values cover. */
  part?: number;
  label: string;
  width?: number;
  height?: number;
  color?: string;
}) {
  const { values, width = 96, height = 20 } = props;
  const most = Math.max(...values, 0);
  const step = (width * (props.part ?? 1)) / Math.max(values.length, 1);
  let path = '';
  values.forEach((v, i) => {
    if (v <= 0 || most <= 0) return;
    const h = Math.max(1.5, (v / most) * height);
    path += `M${(i * step).toFixed(2)} ${height}v${(-h).toFixed(2)}h${Math.max(step - 1, 0.75).toFixed(2)}v${h.toFixed(2)}z`;
  });
  return (
    <svg
      className="sparkline"
      role="img"
      aria-label={props.label}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
    >
      <title>{props.label}</title>
      <path d={`M0 ${height - 0.5}H${width}`} stroke="var(--line-strong)" strokeWidth="1" />
      <path d={path} fill={props.color ?? 'var(--accent)'} />
    </svg>
  );
}
