// Chimbuko processes and the working directory of tests.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const binary = process.env.CHIMBUKO ?? '../bin/chimbuko';

/** Timeout of waits in milliseconds. */
export const patience = 60_000;

/** Creates a directory that is removed at the end. */
export function directory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'chimbuko-page-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs chimbuko and returns its output. */
export function run(...args: string[]): string {
  return execFileSync(binary, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 2 * patience,
  });
}

/** A chimbuko process that runs until stopped. */
export class Service {
  readonly child: ChildProcess;
  private text = '';
  private visit = '';
  private readonly listeners = new Set<() => void>();

  constructor(...args: string[]) {
    this.child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (more: string) => {
        this.text += more;
        for (const l of this.listeners) l();
      });
    }
    this.child.once('exit', () => this.listeners.forEach((l) => l()));
  }

  get output(): string {
    return this.text;
  }

  /** Waits for output that matches a pattern and returns the match. */
  async prints(pattern: RegExp): Promise<RegExpMatchArray> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => {
        clearTimeout(timer);
        this.listeners.delete(look);
        reject(new Error(`${why} before it printed ${pattern}:\n${this.text}`));
      };
      const timer = setTimeout(() => fail('time is up'), patience);
      const look = () => {
        const match = this.text.match(pattern);
        if (match) {
          clearTimeout(timer);
          this.listeners.delete(look);
          resolve(match);
        } else if (this.child.exitCode !== null || this.child.signalCode !== null) {
          fail('it ended');
        }
      };
      this.listeners.add(look);
      look();
    });
  }

  /** The URL of the page with the token, which serve leaves to view. */
  async address(): Promise<string> {
    if (this.visit) return this.visit;
    const pattern = /(https?:\/\/\S+\/\?token=\S+)|chimbuko view (\S+) prints it/;
    const [, whole, dir] = await this.prints(pattern);
    this.visit = whole ?? run('view', dir ?? '').trim();
    return this.visit;
  }

  /** Stops the process and waits for its exit. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.child.kill(signal);
    const hard = setTimeout(() => this.child.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(hard);
  }
}
