import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { linearTicks } from './ticks.ts';
import { Term } from './Term.tsx';
import { terms } from './terms.ts';

const explanation = () => screen.queryByRole('status', { hidden: true }); // jsdom shows no popovers

test('a term explains itself when pressed, and Escape returns to it', async () => {
  const outside = vi.fn();
  document.addEventListener('keydown', outside);
  render(<Term name="rarity" />);
  expect(explanation()).toBeNull();
  await userEvent.tab();
  await userEvent.keyboard('{Enter}');
  const button = screen.getByRole('button', { name: 'rarity', expanded: true });
  expect(explanation()?.textContent).toBe(terms.rarity.text);
  expect(button.getAttribute('aria-describedby')).toBe(explanation()?.id);
  outside.mockClear();
  await userEvent.keyboard('{Escape}');
  expect(explanation()).toBeNull();
  expect(document.activeElement).toBe(button);
  expect(outside).not.toHaveBeenCalled(); // so that nothing else closes
  document.removeEventListener('keydown', outside);
});

test('a click or the focus elsewhere closes an explanation, and only one is open', async () => {
  render(
    <>
      <Term name="own" mark />
      <Term name="kind" mark />
    </>,
  );
  await userEvent.click(screen.getByRole('button', { name: 'Explain own' }));
  expect(explanation()?.textContent).toBe(terms.own.text);
  await userEvent.click(screen.getByRole('button', { name: 'Explain kind' }));
  expect(explanation()?.textContent).toContain('interference: delays hit whatever runs');
  await userEvent.click(document.body);
  expect(explanation()).toBeNull();
  await userEvent.click(screen.getByRole('button', { name: 'Explain own' }));
  await userEvent.tab();
  expect(explanation()).toBeNull();
});

test('a term in a row does not select the row', async () => {
  const select = vi.fn();
  render(
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events -- as rows of tables
    <div onClick={select}>
      <Term name="provisional" />
    </div>,
  );
  await userEvent.click(screen.getByRole('button'));
  expect(explanation()).not.toBeNull();
  expect(select).not.toHaveBeenCalled();
});

test('linear ticks are round and few', () => {
  expect(linearTicks(0, 1, 4)).toEqual([0, 0.5, 1]);
  expect(linearTicks(130, 980, 8)).toEqual([200, 400, 600, 800]);
  expect(linearTicks(0, 0.0042, 4)).toEqual([0, 0.002, 0.004]);
  expect(linearTicks(3, 3, 4)).toEqual([]);
});
