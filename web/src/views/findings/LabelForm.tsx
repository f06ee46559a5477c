import { useState, type SubmitEvent } from 'react';
import { asProblem, putJSON, runPath, useLive, type Finding, type Label } from '../../api/index.ts';
import { Drawer, sentence } from '../../ui/index.ts';

type State = 'open' | 'muted' | 'expected';

const titles: Readonly<Record<State, string>> = {
  muted: 'Mute this finding',
  expected: 'Mark this finding as expected',
  open: 'Note on this finding',
};

const explanations: Readonly<Record<State, string>> = {
  muted: 'Removes it from the list and the verdict. Give a reason for others.',
  expected: 'Marks it as known and removes it from the list and the verdict.',
  open: 'Stored with the finding.',
};

/** Label controls of a finding: mute, expected, note. */
export function LabelForm(props: { finding: Finding; writable: boolean; onChanged: () => void }) {
  const [form, setForm] = useState<State>();
  const now = props.finding.label?.state ?? 'open';
  const why = props.writable
    ? undefined
    : 'The server is read-only. Start it without --read-only to label findings';
  return (
    <>
      {now === 'open' ? (
        <>
          <button
            type="button"
            className="button"
            disabled={!props.writable}
            title={why}
            onClick={() => setForm('muted')}
          >
            Mute…
          </button>
          <button
            type="button"
            className="button"
            disabled={!props.writable}
            title={why}
            onClick={() => setForm('expected')}
          >
            Expected…
          </button>
        </>
      ) : (
        <SetLabel finding={props.finding} writable={props.writable} onChanged={props.onChanged} />
      )}
      <button
        type="button"
        className="button"
        disabled={!props.writable}
        title={why ?? props.finding.label?.note}
        onClick={() => setForm(now as State)}
      >
        {props.finding.label?.note ? 'Note ✎' : 'Note…'}
      </button>
      {form && (
        <LabelDrawer
          finding={props.finding}
          state={form}
          onClose={() => setForm(undefined)}
          onChanged={() => {
            setForm(undefined);
            props.onChanged();
          }}
        />
      )}
    </>
  );
}

/** Removes the label of a muted or expected finding. */
function SetLabel(props: { finding: Finding; writable: boolean; onChanged: () => void }) {
  const { run } = useLive();
  const [problem, setProblem] = useState('');
  const open = () => {
    const body = { state: 'open', note: props.finding.label?.note ?? '' };
    putJSON<Label>(labelPath(run, props.finding.key), body).then(props.onChanged, (err: unknown) =>
      setProblem(asProblem(err).message),
    );
  };
  return (
    <>
      <button type="button" className="button" disabled={!props.writable} onClick={open}>
        {props.finding.label?.state === 'muted' ? 'Unmute' : 'Not expected'}
      </button>
      {problem !== '' && <span role="alert">{sentence(problem)}</span>}
    </>
  );
}

function labelPath(run: string, key: string): string {
  return runPath(run, `labels/${encodeURIComponent(key)}`);
}

/** The form for a label's note. */
function LabelDrawer(props: {
  finding: Finding;
  state: State;
  onClose: () => void;
  onChanged: () => void;
}) {
  const { run } = useLive();
  const [note, setNote] = useState(props.finding.label?.note ?? '');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    putJSON<Label>(labelPath(run, props.finding.key), {
      state: props.state,
      note: note.trim(),
    }).then(props.onChanged, (err: unknown) => {
      const p = asProblem(err);
      setProblem(
        [p.message, p.hint]
          .filter((t) => t !== '')
          .map(sentence)
          .join(' '),
      );
      setBusy(false);
    });
  };
  return (
    <Drawer title={titles[props.state]} onClose={props.onClose} middle>
      <form className="label-form" onSubmit={submit}>
        <p>{explanations[props.state]}</p>
        <label>
          {props.state === 'open' ? 'Note' : 'Reason'}
          <textarea
            rows={3}
            maxLength={2000}
            required={props.state === 'muted'}
            value={note}
            onChange={(e) => setNote(e.target.value)}
          />
        </label>
        {problem !== '' && <p role="alert">{problem}</p>}
        <button type="submit" className="button primary" disabled={busy}>
          {props.state === 'open' ? 'Save' : props.state === 'muted' ? 'Mute' : 'Mark as expected'}
        </button>
      </form>
    </Drawer>
  );
}
