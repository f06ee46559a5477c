// A real Chromium, and checks for every page: no console errors, no requests to other origins, no serious axe findings.
import axe from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { patience } from './program.ts';

export async function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Options of Visit.to. */
export interface Look {
  scheme?: 'dark' | 'light';
  width?: number;
  height?: number;
}

/** A page in its own context that records errors. */
export class Visit {
  readonly page: Page;
  private readonly context: BrowserContext;
  private readonly complaints: string[] = [];

  private constructor(context: BrowserContext, page: Page, origin: string) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (e) => this.complaints.push(`error: ${e.message}`));
    page.on('dialog', (d) => {
      this.complaints.push(`dialog: ${d.message()}`);
      void d.dismiss();
    });
    page.on('console', (m) => {
      if (m.type() === 'error' || m.type() === 'warning')
        this.complaints.push(`console: ${m.text()}`);
    });
    page.on('request', (r) => {
      const url = new URL(r.url());
      if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol)) {
        this.complaints.push(`request to another origin: ${r.url()}`);
      }
    });
  }

  static async to(browser: Browser, url: string, look: Look = {}): Promise<Visit> {
    const context = await browser.newContext({
      colorScheme: look.scheme ?? 'dark',
      viewport: { width: look.width ?? 1440, height: look.height ?? 900 },
      reducedMotion: 'reduce',
    });
    const visit = new Visit(context, await context.newPage(), new URL(url).origin);
    visit.page.setDefaultTimeout(patience);
    await visit.page.goto(url);
    return visit;
  }

  /** Goes to a route of the page, such as findings?kind=slow. */
  async go(route: string): Promise<void> {
    await this.page.evaluate((r) => {
      location.hash = `#/${r}`;
    }, route);
  }

  /** Returns and clears the recorded errors, for errors that a test provokes. */
  forget(): string[] {
    return this.complaints.splice(0);
  }

  /** Expects no recorded errors. */
  isWell(): void {
    expect(this.complaints).toEqual([]);
  }

  /** Expects no serious axe findings. */
  async isAccessible(): Promise<void> {
    await this.page.evaluate(axe.source);
    const findings = await this.page.evaluate(async () => {
      const { axe: checker } = window as unknown as { axe: typeof import('axe-core') };
      const result = await checker.run(document, { resultTypes: ['violations'] });
      return result.violations
        .filter((v) => v.impact === 'serious' || v.impact === 'critical')
        .map(
          (v) =>
            `${v.id}: ${v.help}: ${v.nodes
              .map((n) => n.html.slice(0, 200))
              .slice(0, 3)
              .join(' ; ')}`,
        );
    });
    expect(findings).toEqual([]);
  }

  async leave(): Promise<void> {
    await this.context.close();
  }
}
