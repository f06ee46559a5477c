import { Component, type ReactNode } from 'react';
import { Empty } from '../ui/index.ts';

/** Catches errors of a view, so that the frame and the other views still work. */
export class Boundary extends Component<{ children: ReactNode }, { message: string }> {
  override state = { message: '' };

  static getDerivedStateFromError(err: unknown): { message: string } {
    return { message: err instanceof Error ? err.message : String(err) };
  }

  override render(): ReactNode {
    if (this.state.message === '') return this.props.children;
    return (
      <Empty
        title="Cannot draw this view."
        action={
          <button type="button" className="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        }
      >
        <p>{this.state.message}</p>
        <p>Reload the page if the server was updated. Other views may still work.</p>
      </Empty>
    );
  }
}
