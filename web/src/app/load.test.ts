import { expect, test, vi } from 'vitest';
import { persist } from './load.ts';

test('retries while the server restarts', async () => {
  let n = 0;
  const load = () => (++n < 4 ? Promise.reject(new Error('away')) : Promise.resolve('view'));
  await expect(persist(load, 0)).resolves.toBe('view');
});

test('gives up after 15 attempts', async () => {
  const load = vi.fn(() => Promise.reject(new Error('gone')));
  await expect(persist(load, 0)).rejects.toThrow('gone');
  expect(load).toHaveBeenCalledTimes(15);
});
