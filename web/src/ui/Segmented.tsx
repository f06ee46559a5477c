/** A row of buttons; at most one is pressed. */
export function Segmented<T extends string>(props: {
  label: string;
  /** The value, its label and its tooltip. */
  choices: readonly (readonly [value: T, words: string, title?: string])[];
  chosen: string;
  onChoose: (value: T) => void;
  small?: boolean;
}) {
  return (
    <div
      className={props.small === true ? 'segmented small' : 'segmented'}
      role="group"
      aria-label={props.label}
    >
      {props.choices.map(([value, words, title]) => (
        <button
          key={value}
          type="button"
          title={title}
          aria-pressed={value === props.chosen}
          onClick={() => props.onChoose(value)}
        >
          {words}
        </button>
      ))}
    </div>
  );
}
