import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

// Where `npm run dev` finds a running server (chimbuko view or serve), with its
// token in the address if it wants one: SERVER=http://localhost:8080 npm run dev.
const server = process.env.SERVER ?? 'http://localhost:8080';

// npm run mock answers with made-up data, without a server.
const mock: Plugin = {
  name: 'mock',
  apply: (_, { mode }) => mode === 'mock',
  configureServer(dev) {
    dev.middlewares.use((req, res, next) => {
      if (!(req.url ?? '').startsWith('/api/')) {
        next();
        return;
      }
      dev
        .ssrLoadModule('/src/test/mock.ts')
        .then((m) => {
          const { answer } = m as typeof import('./src/test/mock.ts');
          if (!answer(req, res)) next();
        })
        .catch(next);
    });
  },
};

export default defineConfig({
  base: './', // the page works below the prefix of a proxy
  plugins: [react(), mock],
  build: {
    outDir: '../internal/show/dashboard/ui/dist',
    emptyOutDir: true,
    target: 'es2023',
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    cssCodeSplit: false, // styles are small, and a view must not wait for them when the server is away
    modulePreload: { polyfill: false },
    sourcemap: false,
    license: { fileName: 'licenses.txt' }, // of what is bundled
    reportCompressedSize: true,
    chunkSizeWarningLimit: 700, // ECharts, which is loaded when a chart is shown
  },
  server: {
    proxy: { '/api': { target: server, changeOrigin: true } },
    fs: { allow: ['.', '../docs'] }, // the examples of docs/sql.md are in the page
  },
  test: {
    environment: 'jsdom',
    setupFiles: ['src/test/setup.ts'],
    include: ['src/**/*.test.{ts,tsx}'],
    css: false,
    restoreMocks: true,
    testTimeout: 60_000, // ends a test that hangs; a busy machine needs more than the usual 5 s
  },
});
