import { expect, test, vi } from 'vitest';
import { persist } from './load.ts';

test('a part that cannot be loaded while the server restarts is loaded after', async () => {
  let n = 0;
  const load = () => (++n < 4 ? Promise.reject(new Error('away')) : Promise.resolve('view'));
  await expect(persist(load, 0)).resolves.toBe('view');
});

test('a part that is gone for good is given up', async () => {
  const load = vi.fn(() => Promise.reject(new Error('gone')));
  await expect(persist(load, 0)).rejects.toThrow('gone');
  expect(load).toHaveBeenCalledTimes(15);
});
