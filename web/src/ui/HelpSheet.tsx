import { bindings } from '../keys/index.ts';
import { Drawer } from './Drawer.tsx';

const keyNames: Readonly<Record<string, string>> = {
  Escape: 'Esc',
  ' ': 'Space',
  ArrowLeft: '←',
  ArrowRight: '→',
};

/** The keyboard shortcuts of the current view. */
export function HelpSheet(props: { onClose: () => void }) {
  const groups = new Map<string, Map<string, string[]>>();
  for (const b of bindings()) {
    const group = groups.get(b.group) ?? new Map<string, string[]>();
    groups.set(b.group, group);
    group.set(b.label, [...(group.get(b.label) ?? []), keyNames[b.key] ?? b.key]);
  }
  return (
    <Drawer title="Keyboard shortcuts" onClose={props.onClose} middle>
      <div className="help">
        {[...groups].map(([name, lines]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl>
              {[...lines].map(([label, keys]) => (
                <div key={label}>
                  <dt>
                    {keys.map((k) => (
                      <kbd key={k}>{k}</kbd>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className="muted">
        Part of Chimbuko. <a href="licenses.txt">Licenses</a> of its components.
      </p>
    </Drawer>
  );
}
