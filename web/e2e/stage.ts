// The test environment of a file.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { launch, Visit, type Look } from './browser.ts';
import { directory, run, Service } from './program.ts';

/** A directory, chimbuko processes and a browser, removed after the last test. */
export class Stage {
  private readonly work = directory();
  private readonly services: Service[] = [];
  private chromium: Browser | undefined;
  private shown = '';

  /** prepare runs before the first test and may return the service to visit. */
  constructor(prepare: (stage: Stage) => Service | undefined) {
    beforeAll(async () => {
      this.shown = (await prepare(this)?.address()) ?? '';
      this.chromium = await launch();
    });
    afterAll(async () => {
      await this.chromium?.close();
      await this.stop();
      this.work.remove();
    });
  }

  get dir(): string {
    return this.work.path;
  }

  get browser(): Browser {
    if (!this.chromium) throw new Error('there is no browser before the first test');
    return this.chromium;
  }

  /** The URL of the visited page with the token. */
  get address(): string {
    return this.shown;
  }

  /** Starts a chimbuko. */
  start(...args: string[]): Service {
    const s = new Service(...args);
    this.services.push(s);
    return s;
  }

  /** Stops all processes, the latest first. */
  async stop(): Promise<void> {
    for (const s of this.services.splice(0).reverse()) await s.stop();
  }

  /** Simulates a scenario by name or file and analyzes it into the directory of that name. */
  analyze(scenario: string, name = 'run', ...settings: string[]): void {
    const traces = `${this.dir}/traces-${name}`;
    run('simulate', '--scenario', scenario, '--out', traces);
    run('analyze', traces, '--out', `${this.dir}/${name}`, ...settings);
  }

  /** Visits a page, runs the test on it and expects no errors. */
  async visit(
    look: (v: Visit) => Promise<void>,
    options: Look = {},
    address = this.address,
  ): Promise<void> {
    const v = await Visit.to(this.browser, address, options);
    try {
      await v.page.getByRole('heading', { level: 1 }).first().waitFor();
      await look(v);
      v.isWell();
    } finally {
      await v.leave();
    }
  }
}
