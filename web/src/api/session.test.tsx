import { act, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { overview, status } from '../test/fixtures/run.ts';
import { serve } from '../test/render.tsx';
import { useLive, type Overview } from './index.ts';
import { SessionProvider } from './SessionProvider.tsx';

/** A stream controlled by a test. */
class Source extends EventTarget {
  readyState = 0;
  close(): void {
    this.readyState = 2;
  }
  send(name: string, data: unknown): void {
    act(() => {
      this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
    });
  }
}

let source = new Source();
const open = () => {
  source = new Source();
  return source as unknown as EventSource;
};

/** Prints the session. */
function Seen() {
  const s = useLive();
  return (
    <>
      <output>{`${s.run} ${s.overview?.length_s ?? '-'} going=${s.going} missed=${s.missed} link=${s.link}`}</output>
      <p>{s.problem?.message}</p>
      <button type="button" onClick={() => s.pause(!s.paused)}>
        pause
      </button>
      <button type="button" onClick={s.refresh}>
        refresh
      </button>
    </>
  );
}

const seen = () => screen.getByRole('status').textContent;

function show(first: Overview = overview(8), run = '') {
  const requests = serve({
    'runs/r/overview': { body: first },
    overview: { body: first },
    runs: { body: { rows: [{ run: 1, name: 'r' }], watched: 'r' } },
  });
  render(
    <SessionProvider run={run} open={open}>
      <Seen />
    </SessionProvider>,
  );
  return requests;
}

beforeEach(() => vi.spyOn(console, 'error'));
afterEach(() => vi.unstubAllGlobals());

describe('the session', () => {
  test('shows the fetched overview of the watched run, then the streamed one', async () => {
    show();
    await screen.findByText(/^r 2000 going=true/);
    source.send('overview', overview(8, { length_s: 2001 }));
    expect(seen()).toContain('r 2001');
  });

  test('accepts missing lists', async () => {
    show({
      ...overview(8),
      notices: null as never,
      strip: { from_s: 0, to_s: 1, series: null as never },
    });
    await screen.findByText(/^r 2000/);
  });

  test('keeps its data while paused and counts new anomalies', async () => {
    show();
    await screen.findByText(/^r 2000/);
    source.send('tick', status(8));
    await userEvent.click(screen.getByRole('button', { name: 'pause' }));
    const later = status(8);
    later.totals.anomalies += 1240;
    source.send('tick', later);
    source.send('overview', overview(8, { length_s: 2600 }));
    expect(seen()).toContain('r 2000 going=false missed=1240');
    await userEvent.click(screen.getByRole('button', { name: 'pause' }));
    expect(seen()).toContain('r 2600 going=true missed=0');
  });

  test('does not refetch a finished run', async () => {
    show(overview(8, { live: false, state: 'finished' }));
    await screen.findByText(/going=false/);
  });

  test('refetches the overview after a change', async () => {
    const requests = show();
    await screen.findByText(/^r 2000/);
    const before = requests.filter((r) => r.path.includes('overview')).length;
    await userEvent.click(screen.getByRole('button', { name: 'refresh' }));
    expect(requests.filter((r) => r.path.includes('overview')).length).toBe(before + 1);
  });

  test('reports why it cannot start', async () => {
    serve({
      runs: {
        status: 401,
        body: { error: 'the token is missing', hint: 'use the printed address' },
      },
    });
    render(
      <SessionProvider run="" open={open}>
        <Seen />
      </SessionProvider>,
    );
    expect(await screen.findByText('the token is missing')).toBeTruthy();
  });
});
