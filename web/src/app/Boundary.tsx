import { Component, type ReactNode } from 'react';
import { Empty } from '../ui/index.ts';

/** Keeps the frame when a view fails: the others still work. */
export class Boundary extends Component<{ children: ReactNode }, { message: string }> {
  override state = { message: '' };

  static getDerivedStateFromError(err: unknown): { message: string } {
    return { message: err instanceof Error ? err.message : String(err) };
  }

  override render(): ReactNode {
    if (this.state.message === '') return this.props.children;
    return (
      <Empty
        title="This view could not be drawn."
        action={
          <button type="button" className="button" onClick={() => location.reload()}>
            Load the page again
          </button>
        }
      >
        <p>{this.state.message}</p>
        <p>
          If the server was replaced by a newer one, loading the page again helps. The other views
          may still work.
        </p>
      </Empty>
    );
  }
}
