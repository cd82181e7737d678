// What a person understands on the page: where a text comes from, what it cost, who may do what; and what a person starts there.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { launch, project, serve, visit } from './stage.mjs';
import { book, forget, novel, plain, relay, stopped } from './projects.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser;
const open = [];

async function stage(make, options) {
  const made = make();
  const server = await serve(made.folder);
  open.push(async () => { await server.stop(); made.remove(); });
  return { ...made, ...await visit(browser, server, options), server };
}

async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] }));
  assert.deepEqual(found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`), [], where);
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= room, `${where} is ${wide} wide in ${room}`);
}

/** A book whose chapters were researched. */
function researched() {
  const made = book();
  made.quipu('approve', 'approve-outline');
  made.quipu('run', '--by', 'rehearse', '--until', 'research');
  return made;
}

setTimeout(() => process.exit(1), 280_000).unref();
before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  await Promise.all(open.map((end) => end()));
  forget();
});

describe('understanding', { concurrency: 3 }, () => {
test('a version says what was read to write it and what was made from it', async () => {
  const { page, at, quipu, wrong } = await stage(researched);
  const draft = 'research/ch01-research.md';
  await at('memory', { path: draft, tab: 'provenance' });
  await page.locator('svg.provenance .own').waitFor();
  const facts = JSON.parse(quipu('replay', draft, '--json')).fact.note;
  const reads = page.locator('h3', { hasText: 'What was read to write it' }).locator('xpath=following-sibling::ul[1]/li');
  assert.equal(await reads.count(), facts.reads.length);
  await page.getByRole('link', { name: `${facts.step} · ${facts.unit}` }).first().waitFor();
  await accessible(page, 'provenance');
  // Onwards: a text that was read knows that this one was made from it.
  await at('memory', { path: 'outline-final.md', tab: 'provenance' });
  await page.locator('h3', { hasText: 'What was made from it' }).waitFor();
  assert.ok(await page.getByRole('link', { name: 'research · ch01' }).count() > 0);
  // From the author of a line to what the author had read.
  await at('memory', { path: draft, tab: 'blame' });
  await page.locator('td.by a[aria-label^="What was read"]').first().click();
  await page.locator('svg.provenance .own').waitFor();
  assert.deepEqual(wrong, []);
});

test('a version of a person says that nothing is recorded', async () => {
  const { page, at, wrong } = await stage(book);
  await at('memory', { path: 'meta/style-guide.md', tab: 'provenance' });
  await page.getByText('what was read is not recorded').waitFor();
  assert.deepEqual(wrong, []);
});

test('time and cost are shown by step, unit and agent, beside the estimate', async () => {
  const { page, at, wrong } = await stage(researched);
  await at('time');
  const tile = Number((await page.locator('.tile', { hasText: 'attempts' }).locator('strong').textContent()));
  assert.ok(tile >= 4, `${tile}`);
  assert.equal(await page.locator('svg.lines-of-work rect').count(), tile);
  // Rehearsals report no tokens, which is not the same as none.
  assert.equal(await page.locator('.tile', { hasText: 'tokens read' }).locator('strong').textContent(), '–');
  const row = page.locator('table.figures').last().locator('tr', { hasText: 'research' });
  assert.equal(await row.locator('td').first().textContent(), '2');
  await page.getByRole('button', { name: 'Compare with the estimate' }).click();
  await page.getByText('Still to do:').waitFor();
  assert.match(await row.locator('td').nth(6).textContent(), /[1-9]/);
  await page.getByRole('tab', { name: 'by unit' }).click();
  await page.locator('table.figures').last().locator('tr', { hasText: 'ch02' }).waitFor();
  await accessible(page, 'time');
  assert.deepEqual(wrong, []);
});

test('the contract says who reads and writes what, and by which line', async () => {
  const { page, at, quipu, wrong } = await stage(book);
  await at('contract');
  const roles = JSON.parse(quipu('contract', 'show', '--json')).roles;
  assert.equal(await page.locator('table.rules thead th').count(), Object.keys(roles).length + 1);
  await accessible(page, 'contract');
  // A wider rule denies it, the pointer that names it wins: one answer, as the question below gives it.
  assert.equal(await page.locator('button.cell[aria-label^="r3, meta/style-guide.md"]').getAttribute('aria-label'), 'r3, meta/style-guide.md: read');
  await page.locator('button.cell[aria-label^="architect, outline-draft.md"]').click();
  await page.locator('.panel').getByText('outline-draft.md').first().waitFor();
  await accessible(page, 'contract, a cell');
  await page.locator('.panel').getByRole('button', { name: 'Close' }).click();
  await page.locator('.panel').waitFor({ state: 'detached' });
  // On a phone the cell and its answer are both in sight.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.locator('button.cell[aria-label^="architect, outline-final.md"]').click();
  await page.locator('.panel h2', { hasText: 'outline-final.md' }).waitFor();
  const [cell, panel] = await Promise.all(['button.cell[aria-pressed="true"]', '.panel'].map((one) => page.locator(one).boundingBox()));
  assert.ok(cell.y > 0 && cell.y + cell.height <= panel.y && panel.y < 700 && panel.y + panel.height <= 845, JSON.stringify([cell, panel]));
  await page.locator('.panel').getByRole('button', { name: 'Close' }).click();
  await page.setViewportSize({ width: 1280, height: 860 });
  const ask = async (role, path) => {
    await page.getByRole('combobox', { name: 'Who' }).selectOption(role);
    await page.getByLabel('Path', { exact: true }).fill(path);
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.locator('[role="status"] code.path', { hasText: path }).waitFor();
    return page.locator('[role="status"]').filter({ has: page.locator('code.path') }).textContent();
  };
  assert.match(await ask('architect', 'outline-draft.md'), /write: yes/);
  assert.match(await ask('r3', 'meta/style-guide.md'), /read: yes/);
  const refused = await ask('architect', 'quipu.toml');
  assert.match(refused, /write: no.*only a person may change it/s);
  assert.deepEqual(wrong, []);
});
});

describe('starting', { concurrency: 3 }, () => {
test('a person runs what is ready after seeing what it costs, and sees it end', async () => {
  const { page, quipu, wrong } = await stage(() => { const made = book(); made.quipu('approve', 'approve-outline'); return made; });
  await page.getByRole('button', { name: 'Run the flow' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/\d+ jobs/).waitFor();
  assert.match(await dialog.textContent(), /tokens to read/);
  assert.equal(await dialog.getByRole('combobox').inputValue(), 'rehearse');
  await accessible(page, 'the question');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText(/Ended: 2 accepted/).first().waitFor();
  assert.match(quipu('log', '-n', '50'), /rehearse/);
  await accessible(page, 'after a run');
  assert.deepEqual(wrong, []);
});

test('a failed job is tried again where it is explained', async () => {
  const { page, quipu, wrong } = await stage(stopped);
  await page.locator('.cause').first().getByRole('button', { name: 'Try again' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Agent').selectOption('rehearse');
  await dialog.getByText('1 jobs').waitFor();
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText(/Ended: 1 accepted/).waitFor();
  assert.match(JSON.stringify(JSON.parse(quipu('status', '--json')).flow), /"research","unit":"ch0[12]"\},"state":"done"/);
  assert.deepEqual(wrong, []);
});

test('a run is stopped, and only named agents are started', async () => {
  const made = book();
  made.quipu('approve', 'approve-outline');
  const server = await serve(made.folder, { QUIPU_REHEARSE_PAUSE: '20000' });
  open.push(async () => { await server.stop(); made.remove(); });
  const { page, wrong } = await visit(browser, server);
  const start = (order) => fetch(`${server.origin}/api/run`, { method: 'POST', headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }, body: JSON.stringify(order) });
  for (const by of ['command:touch /tmp/pwned', 'http:example.org', 'nobody', '--help']) assert.equal((await start({ by })).status, 404, by);
  assert.ok((await start({ by: 'rehearse', program: 'sh' })).status >= 400);
  const answer = await start({ by: 'rehearse', step: 'research', unit: 'ch01' });
  assert.equal(answer.status, 200, await answer.text());
  assert.equal((await start({ by: 'rehearse' })).status, 409);
  await page.locator('.sign.s-running').first().waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('did not end well').waitFor();
  assert.equal((await fetch(`${server.origin}/api/run`)).status, 401);
  assert.deepEqual(wrong, []);
});
});

describe('files', { concurrency: 3 }, () => {
test('code has colours, pictures of the project are shown, and others are not fetched', async () => {
  const dot = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
  const { page, at, wrong } = await stage(() => {
    const made = plain();
    made.write('notes/dot.png', dot);
    made.write('notes/code.md', '# Code\n\n```rust\nlet a = 1; // one\n```\n\n![a dot](dot.png) ![far](https://example.org/p.png)\n');
    made.write('notes/lib.rs', '/* many\nlines */\nfn main() {}\n');
    made.quipu('status');
    return made;
  });
  await at('memory', { path: 'notes/code.md' });
  assert.equal(await page.locator('.text .t-k').first().textContent(), 'let');
  await page.locator('img.shown[alt="a dot"]').waitFor();
  assert.equal(await page.locator('img').count(), 1);
  await at('memory', { path: 'notes/lib.rs' });
  assert.deepEqual(await page.locator('.lines .t-c').allTextContents(), ['/* many', 'lines */']);
  await at('memory', { path: 'notes/dot.png' });
  await page.locator('img.shown').waitFor();
  await accessible(page, 'a picture');
  assert.deepEqual(wrong, []);
});

test('versions are listed with their changes, and a difference has two sides', async () => {
  const { page, at, wrong } = await stage(plain);
  await at('memory', { path: 'notes/a.md' });
  await page.getByRole('button', { name: 'All versions' }).click();
  await page.locator('.versions .counts-of').nth(2).waitFor();
  assert.deepEqual(await page.locator('.versions .counts-of').allTextContents(), ['+1 −1', '+1 −1', '+3 −0']);
  await accessible(page, 'versions');
  await page.locator('.versions button').nth(2).click();
  await page.getByRole('button', { name: 'Compare with now' }).click();
  await page.getByRole('button', { name: 'Side by side' }).click();
  const row = page.locator('.diff.two tr', { has: page.locator('.gone') });
  assert.deepEqual(await row.locator('td').allTextContents(), ['3', 'one', '3', 'three']);
  await accessible(page, 'two sides');
  assert.deepEqual(wrong, []);
});

test('folders lead to their files and back', async () => {
  const { page, at, wrong } = await stage(plain);
  await at('memory', { order: 'folders' });
  assert.deepEqual(await page.locator('.file .path').allTextContents(), ['notes/', 'log.md', 'quipu.toml', 'rules.md']);
  await page.locator('.file.folder').click();
  await page.locator('.file .path', { hasText: 'a.md' }).waitFor();
  assert.deepEqual(await page.locator('.file .path').allTextContents(), ['a.md']);
  await accessible(page, 'folders');
  await page.getByRole('link', { name: 'all folders' }).click();
  await page.locator('.file.folder').waitFor();
  assert.deepEqual(wrong, []);
});
});

describe('the story so far', { concurrency: 3 }, () => {
test('a book is opened from Now, searches, and runs only its own scripts', async () => {
  const { page, context, server, wrong } = await stage(() => {
    const made = project('published');
    made.quipu('init', '--profile', 'book', '--var', 'project=Knots');
    made.write('chapters/ch01.md', '# Cords\n\nA runner reads a cord. <script>pwned()</script>\n\n<!-- CHAPTER_FINAL -->\n');
    made.quipu('publish');
    return made;
  });
  const [opened] = await Promise.all([context.waitForEvent('page'), page.getByRole('link', { name: 'Open the book' }).click()]);
  opened.on('pageerror', (error) => wrong.push(String(error)));
  await opened.getByRole('heading', { name: 'Knots' }).waitFor();
  assert.equal(await opened.evaluate(() => sessionStorage.length), 0);
  await opened.fill('[role="search"] input', 'runner');
  await opened.press('[role="search"] input', 'Enter');
  await opened.locator('#found mark').waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the EPUB' }).click()]);
  assert.match(download.suggestedFilename(), /\.epub$/);
  // Nothing but the book is there, and only under the address that the page has.
  const key = new URL(opened.url()).pathname.split('/')[2];
  for (const path of [`/book/${key}/quipu.toml`, `/book/${key}/chapters/ch01.md`, `/book/${'0'.repeat(key.length)}/publish/index.html`]) assert.equal((await fetch(server.origin + path)).status, 404, path);
  assert.deepEqual(wrong, []);
});

test('a relay says where things stand, and its todos are filtered and sorted', async () => {
  const { page, at, wrong } = await stage(() => {
    const made = relay();
    made.quipu('state', 'merge', '--text', '{"phase":"development","progress":{"next_steps":["Name the parser"],"blocked":[{"item":"Sign in","reason":"no key yet"}]}}');
    return made;
  });
  const card = page.locator('.card', { hasText: 'Where things stand' });
  await card.getByText('development').waitFor();
  assert.match(await card.textContent(), /Name the parser.*|no key yet/);
  // What is empty is left out, and so is what only a flow has.
  assert.doesNotMatch(await card.textContent(), /–|in progress/);
  assert.equal(await page.getByText('No agent is running').count(), 0);
  await accessible(page, 'a relay');
  await at('work');
  await page.getByRole('searchbox', { name: 'Search todos' }).fill('parser');
  await page.getByText('Name the release').waitFor({ state: 'detached' });
  assert.equal(await page.locator('li.todo').count(), 1);
  await page.getByRole('searchbox', { name: 'Search todos' }).fill('');
  await page.getByRole('combobox', { name: 'Order' }).selectOption('title');
  await page.waitForFunction(() => document.querySelector('[data-status="pending"] li.todo strong')?.textContent === 'Name the release');
  await accessible(page, 'todos');
  await at('work', { tab: 'decisions' });
  assert.equal(await page.locator('#d-ADR-001 .tag').textContent(), 'Replaced');
  assert.equal(await page.locator('#d-ADR-002 .tag').textContent(), 'Accepted');
  assert.equal(await page.getByText('Drag a card').count(), 0);
  assert.deepEqual(wrong, []);
});

test('the flow says what stops it, with what waits for it folded', async () => {
  const { page, at, wrong } = await stage(stopped);
  await at('flow');
  await page.locator('.causes').getByText('research · ch01').waitFor();
  assert.ok(await page.locator('.causes details').count() > 0);
  await accessible(page, 'a stopped flow');
  assert.deepEqual(wrong, []);
});

test('reasons, steps and flags are Chinese over an English project', async () => {
  const { page, at, wrong } = await stage(() => {
    const made = stopped();
    made.write('meta/style-guide.md', 'other words\n');
    return made;
  }, { locale: 'zh-CN' });
  await at('flow');
  await page.locator('.causes').getByText(/连续失败 \d 次/).first().waitFor();
  await page.locator('.causes').getByText('调研 · ch01').first().waitFor();
  await page.locator('button.cell[aria-label^="写作 ch01"]').click();
  await page.locator('.panel').getByText(/^等待 /).first().waitFor();
  await page.locator('.panel').getByRole('heading', { name: '待写出' }).waitFor();
  await at('journal');
  await page.getByText('由 quipu init 创建').first().waitFor();
  assert.ok(!(await page.locator('.entry strong').allTextContents()).some((name) => /^(person|external)$|rehearse/.test(name)));
  assert.deepEqual(wrong, []);
});

test('the first page is small, and the rest comes when it is shown', async () => {
  const { page, at, wrong } = await stage(plain);
  const loaded = () => page.evaluate(() => performance.getEntriesByType('resource').filter((one) => /\.(js|css|svg)$/.test(one.name)).reduce((sum, one) => sum + one.encodedBodySize, 0));
  const first = await loaded();
  assert.ok(first > 20_000 && first < 100_000, `${first} bytes`);
  await at('graph');
  await page.getByRole('heading', { level: 1, name: 'Graph' }).waitFor();
  assert.ok(await loaded() > first);
  assert.deepEqual(wrong, []);
});

test('the menu leaves out what a project cannot fill, and the palette goes to what it has', async () => {
  const { page, wrong } = await stage(plain);
  assert.deepEqual(await page.locator('nav a').allTextContents(), ['Now', 'Memory', 'Graph', 'Contract', 'Journal']);
  await page.keyboard.press('/');
  await page.getByRole('searchbox').fill('contr');
  await page.getByRole('dialog').getByRole('link', { name: 'Contract' }).click();
  await page.getByRole('heading', { name: 'Contract', level: 1 }).waitFor();
  assert.deepEqual(wrong, []);
});
});
