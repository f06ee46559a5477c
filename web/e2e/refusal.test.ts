// Errors and refusals.
import { describe, expect, test } from 'vitest';
import { Visit } from './browser.ts';
import type { Service } from './program.ts';
import { Stage } from './stage.ts';

let service: Service;
const stage = new Stage((s) => {
  s.analyze('clean', 'run', '--min-loss', '1h');
  return (service = s.start('view', `${s.dir}/run`));
});

describe('the page', () => {
  test('refuses access without the token and explains how to get it', async () => {
    const v = await Visit.to(stage.browser, new URL(stage.address).origin + '/');
    await v.page
      .getByText(/chimbuko status/)
      .first()
      .waitFor();
    v.forget(); // the answer 401
    await v.leave();
  });

  test('asks for the token and keeps the linked part of the page', async () => {
    const link = new URL(stage.address).origin + '/#/functions?sort=-calls';
    const v = await Visit.to(stage.browser, link);
    await v.isAccessible();
    const field = v.page.getByLabel(/Token/);
    await field.fill('wrong');
    await v.page.keyboard.press('Enter');
    await v.page.getByRole('heading', { name: 'This is not the token of the run' }).waitFor();
    await field.fill(stage.address); // the entire address is accepted, too
    await v.page.keyboard.press('Enter');
    await v.page.getByRole('grid').first().waitFor();
    expect(v.page.url()).toBe(link);
    v.forget(); // the answers 401
    await v.leave();
  });

  test('leaves no token in the address', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    await v.page.getByRole('heading', { level: 1 }).waitFor();
    expect(v.page.url()).not.toContain('token');
    v.isWell();
    await v.leave();
  });

  test('lists judged and slowest calls of a run without anomalies', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    await v.page.getByRole('heading', { level: 1, name: /0 anomalies in .* calls/ }).waitFor();
    await v.page
      .getByText(/slowest/i)
      .first()
      .waitFor();
    await v.isAccessible();
    v.isWell();
    await v.leave();
  });

  test('reports missing events and findings', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    await v.go('e/0:1:2:3');
    await v.page.getByText('Event 0:1:2:3 not found').waitFor();
    v.forget(); // the answer 404
    await v.leave();
  });

  test('keeps showing its data when the server stops', async () => {
    const v = await Visit.to(stage.browser, stage.address);
    const verdict = v.page.getByRole('heading', { level: 1 });
    await verdict.waitFor();
    await service.stop('SIGKILL');
    await v.page.getByText(/reconnecting/i).waitFor();
    await verdict.waitFor();
    await v.leave();
  });
});
