import { defineConfig } from 'vitest/config';

// The page in a real browser, against real processes. One file after the other: a
// browser and an analysis are enough for two cores.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['e2e/**/*.test.ts'],
    fileParallelism: false,
    retry: 1, // a machine that does much else at once may not show something in time
    testTimeout: 90_000,
    hookTimeout: 180_000,
  },
});
