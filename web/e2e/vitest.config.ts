import { defineConfig } from 'vitest/config';

// The page in a real browser with real processes. Files run one by one, since a browser and an analysis occupy two cores.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['e2e/**/*.test.ts'],
    fileParallelism: false,
    retry: 1, // a machine that does much else at once may not show something in time
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});
