// Five things that a person wants who has never seen the page: each begins at Now and goes by visible names only.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { launch, serve, visit } from './stage.mjs';
import { book, forget, novel, plain, stopped } from './projects.mjs';

let browser;
const open = [];

async function stage(make) {
  const made = make();
  const server = await serve(made.folder);
  open.push(async () => { await server.stop(); made.remove(); });
  return { ...made, ...await visit(browser, server) };
}

setTimeout(() => process.exit(1), 280_000).unref();
before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  await Promise.all(open.map((end) => end()));
  forget();
});

describe('five tasks', { concurrency: 2 }, () => {
test('find why the book stopped, and get it going', async () => {
  const { page, quipu, wrong } = await stage(stopped);
  const cause = (chapter) => page.locator('.cause', { has: page.getByRole('link', { name: `research · ${chapter}`, exact: true }) });
  await cause('ch01').getByText("the agent's program stopped with an error (exit code 1)").waitFor();
  await cause('ch01').getByRole('link', { name: 'What the agent did' }).click();
  await page.getByRole('tab', { name: 'Transcript', selected: true }).waitFor();
  await page.getByRole('link', { name: 'Now', exact: true }).click();
  for (const chapter of ['ch01', 'ch02']) {
    await cause(chapter).getByRole('button', { name: /^Try again/ }).click();
    // The agent that failed was described on the command line only.
    await page.getByRole('dialog').getByLabel('Agent').selectOption('rehearse');
    await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await cause(chapter).waitFor({ state: 'detached' });
  }
  const jobs = JSON.parse(quipu('status', '--json')).flow;
  assert.deepEqual(jobs.filter((job) => job.job.step === 'research').map((job) => job.state), ['done', 'done']);
  await page.getByRole('button', { name: /^Run the flow/ }).waitFor();
  assert.deepEqual(wrong, []);
});

test('undo an illegal edit', async () => {
  const { page, read, quipu, wrong } = await stage(() => { const made = plain(); made.write('rules.md', `${made.read('rules.md')}\nShout.\n`); return made; });
  await page.getByRole('button', { name: 'Undo the change' }).click();
  await page.getByRole('dialog').locator('.diff .added', { hasText: 'Shout.' }).waitFor();
  await page.getByRole('dialog').locator('button.main').click();
  await page.getByText('Waits for you').waitFor({ state: 'detached' });
  assert.doesNotMatch(read('rules.md'), /Shout/);
  assert.equal(JSON.parse(quipu('status', '--json')).flagged?.length ?? 0, 0);
  assert.deepEqual(wrong, []);
});

test('find out who wrote a sentence, and what they had read', async () => {
  const { page, read, wrong } = await stage(() => { const made = book(); made.quipu('approve', 'approve-outline'); made.quipu('run', '--by', 'rehearse', '--until', 'research'); return made; });
  const sentence = read('research/ch01-research.md').split('\n').filter((line) => /^[A-Z-].{30,}/.test(line))[0].slice(2, 32);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('searchbox').last().fill(sentence);
  await page.getByRole('dialog').getByRole('region', { name: 'Exact text' }).getByRole('link').first().click();
  await page.getByRole('tab', { name: 'Who wrote it' }).click();
  const row = page.locator('tr.marked');
  await row.getByText('researcher').waitFor();
  await row.getByText('what it had read').click();
  await page.getByRole('heading', { name: 'What was read to write it' }).waitFor();
  await page.getByRole('link', { name: 'outline-final.md' }).first().waitFor();
  assert.deepEqual(wrong, []);
});

test('approve an outline, with a note', async () => {
  const { page, quipu, wrong } = await stage(book);
  await page.getByText('A person weighs draft and opinions').waitFor();
  await page.getByRole('button', { name: 'The same, with a note' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('Shorten chapter two.');
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^Run the flow/ }).waitFor();
  assert.match(quipu('log', '-n', '5'), /Shorten chapter two/);
  assert.deepEqual(wrong, []);
});

test('find where memory speaks of a term', async () => {
  const { page, wrong } = await stage(novel);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByRole('searchbox').last().fill('bell rope');
  const hits = page.getByRole('dialog').getByRole('region', { name: 'Exact text' }).getByRole('link');
  await hits.first().waitFor();
  const place = await hits.first().textContent();
  await hits.first().click();
  await page.locator('.lines tr.marked', { hasText: /bell rope/i }).waitFor();
  assert.match(place, /\.md:\d+/);
  assert.deepEqual(wrong, []);
});
});
