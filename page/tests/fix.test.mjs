// What a person sees of trouble, and that it is fixed where it is seen.

import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { launch, serve, visit } from './stage.mjs';
import { book, forget, novel, plain, relay, stopped, storied, unitless, web } from './projects.mjs';

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
}

const edit = (made, path, change) => writeFileSync(`${made.folder}/${path}`, change(made.read(path)));

setTimeout(() => process.exit(1), 280_000).unref();
before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  await Promise.all(open.map((end) => end()));
  forget();
});

describe('flagged files', { concurrency: 3 }, () => {
test('a sealed file that was edited shows the edit, and is accepted with a reason', async () => {
  const { page, at, quipu, read, wrong } = await stage(() => { const made = plain(); edit(made, 'rules.md', (text) => `${text}\nShout.\n`); return made; });
  await at('memory', { path: 'rules.md' });
  await page.locator('.flagged .diff .added', { hasText: 'Shout.' }).waitFor();
  await page.getByText('the version that Quipu recorded').waitFor();
  await accessible(page, 'a flagged file');
  await page.getByRole('button', { name: 'Accept it' }).click();
  await page.locator('dialog .diff .added', { hasText: 'Shout.' }).waitFor();
  await accessible(page, 'the question');
  await page.getByRole('textbox', { name: 'Why is it right?' }).fill('It is loud here.');
  await page.locator('dialog').getByRole('button', { name: 'Accept it' }).click();
  await page.locator('.flagged').waitFor({ state: 'detached' });
  await page.locator('.text').getByText('Shout.').waitFor();
  assert.match(quipu('log', 'rules.md', '-n', '1'), /amend .*person.*It is loud here/s);
  assert.match(read('rules.md'), /Shout/);
  assert.deepEqual(wrong, []);
});

test('settings of a host that were deleted are shown at Now, with the remedy', async () => {
  const { page, wrong } = await stage(() => { const made = plain(); made.quipu('integrate', 'claude'); rmSync(`${made.folder}/.mcp.json`); return made; });
  await page.getByText('`.mcp.json` was deleted').waitFor();
  await page.getByText('quipu integrate claude').first().waitFor();
  assert.deepEqual(wrong, []);
});

test('an edit of an append-only file is undone at Now, and cannot be accepted', async () => {
  const { page, quipu, read, wrong } = await stage(() => { const made = plain(); edit(made, 'log.md', (text) => text.replace('first', 'last')); return made; });
  const flagged = page.locator('.flagged', { hasText: 'log.md' });
  await flagged.waitFor();
  // Nothing says that all is well beside it.
  await page.getByRole('heading', { name: 'Needs attention' }).waitFor({ state: 'detached' });
  await flagged.getByRole('button', { name: 'Show the change' }).click();
  await flagged.locator('.diff .gone', { hasText: 'first entry' }).waitFor();
  assert.equal(await flagged.getByRole('button', { name: 'Accept it' }).count(), 0);
  await flagged.getByRole('button', { name: 'Undo the change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await flagged.waitFor({ state: 'detached' });
  assert.equal(read('log.md'), 'first entry\nsecond entry\n');
  assert.equal(JSON.parse(quipu('status', '--json')).scan.files.length, 0);
  await page.getByText('No link is broken.', { exact: true }).waitFor();
  assert.deepEqual(wrong, []);
});

test('a sealed file that was deleted is brought back', async () => {
  const { page, at, try: attempt, folder, read, wrong } = await stage(plain);
  writeFileSync(`${folder}/rules.md.old`, read('rules.md'));
  const { rmSync } = await import('node:fs');
  rmSync(`${folder}/rules.md`);
  await at('memory', { path: 'rules.md' });
  await page.locator('.flagged .diff .gone', { hasText: 'Speak plainly.' }).waitFor();
  await page.getByRole('button', { name: 'Undo the change' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
  await page.locator('.flagged').waitFor({ state: 'detached' });
  assert.match(read('rules.md'), /Speak plainly/);
  assert.equal(attempt('status').status, 0);
  assert.deepEqual(wrong, []);
});
});

describe('what is seen', { concurrency: 3 }, () => {
test('an external edit appears while the file is open, allowed or not', async () => {
  const made = await stage(plain);
  const { page, at, write, wrong } = made;
  await at('memory', { path: 'notes/a.md' });
  await page.locator('.text').getByText('three').waitFor();
  write('notes/a.md', '# A\n\nwritten in an editor\n');
  await page.locator('.text').getByText('written in an editor').waitFor();
  await at('memory', { path: 'rules.md' });
  await page.locator('.text').getByText('Speak plainly.').waitFor();
  edit(made, 'rules.md', (text) => `${text}\nShout.\n`);
  await page.locator('.diff .added', { hasText: 'Shout.' }).waitFor();
  edit(made, 'rules.md', (text) => text.replace('Shout.', 'Whisper.'));
  await page.locator('.diff .added', { hasText: 'Whisper.' }).waitFor();
  assert.deepEqual(wrong, []);
});

test('the slider stays in the hand while a version loads', async () => {
  const { page, at, wrong } = await stage(plain);
  await at('memory', { path: 'notes/a.md' });
  const slider = page.getByRole('slider');
  await slider.focus();
  await slider.evaluate((input) => { globalThis.held = input; });
  let release;
  const released = new Promise((done) => { release = done; });
  await page.route(/\/api\/file\?.*at=/, async (route) => { await released; await route.continue(); });
  await page.keyboard.press('ArrowLeft');
  await page.waitForFunction(() => location.hash.includes('at='));
  const held = () => page.evaluate(() => ({ there: globalThis.held.isConnected, focused: document.activeElement === globalThis.held, text: Boolean(document.querySelector('.text')) }));
  assert.deepEqual(await held(), { there: true, focused: true, text: true });
  await page.keyboard.press('ArrowLeft');
  release();
  await page.locator('.text').getByText('one').waitFor();
  assert.deepEqual(await held(), { there: true, focused: true, text: true });
  assert.deepEqual(wrong, []);
});

test('who wrote it follows the chosen version', async () => {
  const { page, at, wrong } = await stage(plain);
  await at('memory', { path: 'notes/a.md', tab: 'blame' });
  await page.locator('.lines', { hasText: 'three' }).waitFor();
  await page.getByRole('slider').focus();
  await page.keyboard.press('ArrowLeft');
  await page.locator('.lines', { hasText: 'two' }).waitFor();
  assert.doesNotMatch(await page.locator('.lines').textContent(), /three/);
  assert.deepEqual(wrong, []);
});

test('a failed step waits for a person, once, with what it blocks folded', async () => {
  const { page, quipu, wrong } = await stage(stopped);
  const statuses = JSON.parse(quipu('status', '--json')).flow;
  const number = (state) => statuses.filter((one) => one.state === state).length;
  assert.ok(number('failed') > 0 && number('blocked') > number('failed'));
  const yours = page.locator('.card.attention');
  await yours.waitFor();
  assert.equal(await yours.locator('.cause').count(), number('failed'));
  assert.equal(await page.getByText('Nothing waits for you').count(), 0);
  assert.equal(await page.locator('.cause .tag.s-blocked').count(), 0, 'blocked jobs are not listed beside their cause');
  const retry = await yours.locator('.cause details code').first().textContent();
  assert.match(retry, /^quipu run --step research --unit ch01 --by NAME/);
  await yours.locator('summary', { hasText: 'jobs wait for this' }).first().click();
  await yours.getByRole('link', { name: 'write · ch01' }).waitFor();
  await accessible(page, 'failed steps');
  assert.deepEqual(wrong, []);
});

const BROKEN = `
[agents.broken]
via = "command"
program = "/bin/sh"
args = ["-c", "printf '\\\\033[31mreading\\\\033[0m\\\\n'; echo no key for the model >&2; exit 1"]
`;
test('a failed step says what the agent printed, and is tried again by the same agent', async () => {
  const { page, at, wrong } = await stage(() => {
    const made = book();
    made.quipu('approve', 'approve-outline');
    made.write('quipu.toml', `${made.read('quipu.toml')}${BROKEN}`);
    made.quipu('trust', '--yes');
    made.try('run', '--step', 'research', '--unit', 'ch01', '--by', 'broken');
    made.try('run', '--step', 'research', '--unit', 'ch02', '--by', 'command:sh -c "exit 1"');
    return made;
  });
  const cause = (chapter) => page.locator('.cause', { has: page.getByRole('link', { name: `research · ${chapter}`, exact: true }) });
  const dialog = page.getByRole('dialog');
  await cause('ch01').getByText("the agent's program stopped with an error (exit code 1): no key for the model").waitFor();
  // Two pipes have no order.
  assert.deepEqual((await cause('ch01').locator('.said').textContent()).split('\n').sort(), ['no key for the model', 'reading']);
  await cause('ch01').getByRole('button', { name: /^Try again/ }).click();
  assert.equal(await dialog.getByLabel('Agent').inputValue(), 'broken');
  await page.keyboard.press('Escape');
  await cause('ch02').getByText('The agent (sh) printed nothing.').waitFor();
  await cause('ch02').getByRole('button', { name: /^Try again/ }).click();
  await dialog.getByText('This page cannot start it').waitFor();
  assert.equal(await dialog.getByLabel('Agent').inputValue(), '', 'a rehearsal is not a second try');
  assert.ok(await dialog.getByRole('button', { name: 'Run', exact: true }).isDisabled());
  await accessible(page, 'the question for an agent');
  await dialog.getByLabel('Agent').selectOption('rehearse');
  await dialog.getByText(/tokens to read/).waitFor();
  await page.keyboard.press('Escape');
  await at('flow', { step: 'research', unit: 'ch01' });
  await page.locator('.panel .said', { hasText: 'no key for the model' }).first().waitFor();
  await page.getByRole('tab', { name: 'Transcript' }).click();
  await page.locator('.transcript').getByText('no key for the model').first().waitFor();
  assert.equal(await page.locator('.transcript').getByText('You are the Researcher').first().isVisible(), false, 'the brief is folded');
  await at('flow', { step: 'research', unit: 'ch02' });
  await page.locator('.panel').getByText('The agent (sh) printed nothing.').waitFor();
  assert.equal(await page.locator('.panel .sentence', { hasText: 'was not written' }).count(), 1, 'the reason is said once');
  assert.deepEqual(wrong, []);
});

test('each tab is a step of the history', async () => {
  const { page, at, wrong } = await stage(book);
  const chosen = (name) => page.getByRole('tab', { name, selected: true }).waitFor();
  await at('flow');
  await at('flow', { step: 'outline' });
  for (const name of ['Brief', 'Overview', 'Transcript']) { await page.getByRole('tab', { name }).click(); await chosen(name); }
  for (const name of ['Overview', 'Brief', 'Overview']) { await page.goBack(); await chosen(name); }
  await page.goBack();
  await page.locator('.panel').waitFor({ state: 'detached' });
  await at('memory', { path: 'outline-draft.md' });
  await page.getByRole('tab', { name: 'Source' }).click();
  await chosen('Source');
  await page.goBack();
  await chosen('Read');
  assert.deepEqual(wrong, []);
});

test('a flow without units is not done', async () => {
  const { page, wrong } = await stage(unitless);
  await page.getByText('No unit is declared yet').waitFor();
  assert.equal(await page.getByText('Every step is done').count(), 0);
  assert.deepEqual(wrong, []);
});

test('broken links, overdue threads and premises that gave way are at Now', async () => {
  const { page, wrong } = await stage(() => {
    const made = novel();
    edit(made, 'world.md', (text) => `${text}\n- The mill burnt down [→ manuscripts/ch99.md#the-fire]\n`);
    return made;
  });
  const card = page.locator('.card', { hasText: 'Needs attention' });
  await card.locator('li', { hasText: 'manuscripts/ch99.md#the-fire' }).getByRole('link', { name: /^world\.md:\d+$/ }).waitFor();
  await card.locator('li', { hasText: 'The cut rope' }).getByText('overdue').waitFor();
  await card.locator('li', { hasText: 'Joss Arden' }).getByText('premise gave way').waitFor();
  assert.deepEqual(wrong, []);
});

test('nothing of a long difference is cut without a word', async () => {
  const lines = (word) => Array.from({ length: 3000 }, (_, nth) => `${word} ${nth}`).join('\n');
  const { page, at, wrong } = await stage(() => {
    const made = plain();
    made.quipu('write', 'notes/a.md', '--text', lines('old'));
    made.quipu('write', 'notes/a.md', '--text', lines('new'));
    return made;
  });
  await at('memory', { path: 'notes/a.md', at: '~1', tab: 'source' });
  await page.getByRole('slider').focus();
  await page.keyboard.press('ArrowLeft');
  await page.getByRole('button', { name: 'Restore this version' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/the first 1,000 of 6,\d+ lines are shown/).waitFor();
  assert.match(await dialog.locator('.counts').textContent(), /\+3,000.*−3,000/);
  await dialog.getByRole('button', { name: /more lines/ }).click();
  await dialog.locator('.diff .added', { hasText: 'old 2999' }).waitFor();
  assert.equal(await dialog.getByText('lines are shown').count(), 0);
  assert.deepEqual(wrong, []);
});

test('a restore is offered only where the class allows it', async () => {
  const { page, at, wrong } = await stage(plain);
  await at('memory', { path: 'log.md' });
  await page.getByRole('slider').focus();
  await page.keyboard.press('ArrowLeft');
  await page.getByText('This is an older version.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Restore this version' }).count(), 0);
  await at('journal', { path: 'log.md' });
  await page.locator('.entry button.seq').last().click();
  await page.getByRole('button', { name: 'What changed' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Restore this version' }).count(), 0);
  await at('journal', { path: 'notes/a.md' });
  await page.locator('.entry', { hasText: 'notes/a.md' }).last().locator('button.seq').click();
  await page.getByRole('button', { name: 'Restore this version' }).waitFor();
  assert.deepEqual(wrong, []);
});
});

describe('the graph', { concurrency: 2 }, () => {
const listed = async (page) => {
  await page.getByText('The same as a list').click();
  return (await page.locator('details .path').allTextContents()).sort();
};

test('only its neighbours: those, and not what the index leads to', async () => {
  const { page, at, wrong } = await stage(() => web(80));
  const neighbours = new Set(['pages/p0.md']);
  for (let nth = 0; nth < 80; nth += 1) {
    for (const other of [nth * 7 + 1, nth * 3 + 2].map((number) => number % 80)) {
      if (nth === 0) neighbours.add(`pages/p${other}.md`);
      if (other === 0) neighbours.add(`pages/p${nth}.md`);
    }
  }
  await at('graph', { node: 'pages/p0.md' });
  await page.locator('canvas.graph[data-settled="yes"]').waitFor();
  await page.getByRole('button', { name: 'Only its neighbours' }).click();
  await page.getByText('Show all').first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll('datalist option').length < 80);
  assert.deepEqual(await listed(page), [...neighbours].sort());
  assert.deepEqual(wrong, []);
});

const picture = (page) => page.locator('canvas.graph').evaluate((canvas) => canvas.toDataURL());

test('a commit leaves places and zoom as they are', async () => {
  const { page, at, quipu, wrong } = await stage(() => web(60));
  await at('graph');
  const canvas = page.locator('canvas.graph[data-settled="yes"]');
  await canvas.waitFor();
  const whole = await picture(page);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 50, box.y + 50);
  await page.mouse.wheel(0, -600);
  await page.waitForFunction((whole) => document.querySelector('canvas.graph').toDataURL() !== whole, whole);
  const zoomed = await picture(page);
  const heard = page.waitForResponse((answer) => answer.url().includes('/api/graph'));
  quipu('write', 'other.txt', '--text', 'no page');
  await heard;
  await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
  assert.equal(await picture(page) === zoomed, true, 'the picture is the same');
  assert.deepEqual(wrong, []);
});

test('two fingers zoom', async () => {
  const { page, at, context, wrong } = await stage(() => web(60), { width: 390, height: 844 });
  await at('graph');
  const canvas = page.locator('canvas.graph[data-settled="yes"]');
  await canvas.waitFor();
  await canvas.scrollIntoViewIfNeeded();
  const zoom = () => canvas.evaluate((one) => Number(one.dataset.zoom));
  const before = await zoom();
  const box = await canvas.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + 100];
  const device = await context.newCDPSession(page);
  const touch = (type, gap) => device.send('Input.dispatchTouchEvent', { type, touchPoints: gap === null ? [] : [{ x: x - gap, y, id: 1 }, { x: x + gap, y, id: 2 }] });
  await touch('touchStart', 20);
  for (const gap of [30, 40, 50, 60]) await touch('touchMove', gap);
  await touch('touchEnd', null);
  assert.ok(await zoom() > before * 2, `${before} to ${await zoom()}`);
  assert.deepEqual(wrong, []);
});
});

describe('by keys and on a phone', { concurrency: 3 }, () => {
test('a list is one stop: arrows, Enter, Escape', async () => {
  const { page, at, wrong } = await stage(() => web(200));
  await at('memory', { path: 'pages/p0.md' });
  await page.locator('.text').waitFor();
  await page.getByRole('searchbox', { name: 'Search paths' }).focus();
  let stops = 0;
  while (!await page.evaluate(() => document.activeElement.closest('.reader'))) {
    await page.keyboard.press('Tab');
    stops += 1;
    assert.ok(stops < 20, 'the reader is a few stops away');
  }
  await page.locator('.file[aria-current]').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('p1.md'));
  await page.keyboard.press('End');
  await page.waitForFunction(() => document.activeElement.textContent.includes('quipu.toml'));
  await page.keyboard.press('Home');
  await page.waitForFunction(() => document.activeElement.textContent.includes('index.md'));
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !location.hash.includes('path='));
  assert.deepEqual(wrong, []);
});

test('arrows go through the board and the journal', async () => {
  const { page, at, wrong } = await stage(book);
  await at('flow');
  await page.locator('button.cell').first().focus();
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label'));
  assert.match(await focused(), /^research ch01/);
  await page.keyboard.press('ArrowDown');
  assert.match(await focused(), /^research ch02/);
  await page.keyboard.press('ArrowRight');
  assert.match(await focused(), /^write ch02/);
  await page.keyboard.press('Enter');
  await page.locator('.panel').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.panel').waitFor({ state: 'detached' });
  await at('journal');
  await page.locator('.entry button.seq').first().focus();
  const second = await page.locator('.entry button.seq').nth(1).textContent();
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), second);
  assert.deepEqual(wrong, []);
});

test('shortcuts are listed, work, and can be switched off', async () => {
  const { page, wrong } = await stage(relay);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  await accessible(page, 'the shortcuts');
  await page.keyboard.press('Escape');
  const views = await page.locator('nav a').allTextContents();
  await page.keyboard.press(String(views.indexOf('Work') + 1));
  await page.getByRole('heading', { level: 1, name: 'Work' }).waitFor();
  await page.getByPlaceholder('What is to be done?').fill('3/?');
  assert.equal(await page.getByPlaceholder('What is to be done?').inputValue(), '3/?');
  await page.locator('main').focus();
  await page.keyboard.press('?');
  await page.getByLabel('Shortcuts of one character').uncheck();
  await page.keyboard.press('Escape');
  await page.keyboard.press('1');
  await page.keyboard.press('/');
  assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), 'Work');
  assert.equal(await page.getByRole('dialog').count(), 0);
  assert.deepEqual(wrong, []);
});

test('the current view and tab are in sight on a phone', async () => {
  const { page, at, wrong } = await stage(novel, { width: 390, height: 844 });
  const seen = (selector) => page.locator(selector).evaluate((one) => { const { left, right } = one.getBoundingClientRect(); return left >= 0 && right <= innerWidth; });
  await at('journal');
  assert.ok(await seen('nav [aria-current]'));
  await at('story', { tab: 'knows' });
  await page.getByRole('tab', { name: 'Who knows what' }).waitFor();
  assert.ok(await seen('main [role="tab"][aria-selected="true"]'));
  // What goes on beyond the edge fades there, and no longer when one is at its end.
  const tabs = page.locator('main .tabs');
  await page.waitForFunction(() => document.querySelector('main .tabs').dataset.cut && document.querySelector('nav').dataset.cut);
  await tabs.evaluate((row) => { row.scrollLeft = row.scrollWidth; });
  await page.waitForFunction(() => document.querySelector('main .tabs').dataset.cut === 'start');
  assert.match(await tabs.evaluate((row) => getComputedStyle(row).maskImage), /gradient/);
  await at('now');
  assert.ok(await seen('nav [aria-current]'));
  assert.deepEqual(wrong, []);
});
});

describe('act where you read', { concurrency: 3 }, () => {
test('an outline is approved with a note, at the draft', async () => {
  const { page, at, quipu, wrong } = await stage(book);
  await at('memory', { path: 'outline-draft.md' });
  const card = page.locator('.reader .card.attention');
  await card.getByRole('button', { name: 'The same, with a note' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('Good, but keep it short.');
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await card.waitFor({ state: 'detached' });
  assert.match(quipu('log', '-n', '3'), /Good, but keep it short/);
  assert.deepEqual(wrong, []);
});

test('an outline is rejected in the panel of the gate', async () => {
  const { page, at, quipu, wrong } = await stage(book);
  await at('flow', { step: 'approve-outline' });
  await page.locator('.panel').getByRole('button', { name: 'Reject' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('Patterns come first.');
  await page.getByRole('button', { name: 'Send it back' }).click();
  await page.locator('.panel').getByRole('button', { name: 'Reject' }).waitFor({ state: 'detached' });
  assert.match(quipu('log', '-n', '3'), /Patterns come first/);
  assert.deepEqual(wrong, []);
});

test('a learned fact is accepted, another refused', async () => {
  const { page, at, quipu, read, wrong } = await stage(() => {
    const made = novel();
    made.quipu('learn', 'who paid the smith for the iron ring?', '--to', 'characters.md#odile');
    made.quipu('learn', 'who wrote to the council?', '--to', 'characters.md#pell');
    return made;
  });
  const waiting = JSON.parse(quipu('learn', '--list', '--json')).proposals;
  assert.equal(waiting.length, 2);
  const card = page.locator('.card', { hasText: 'Facts for memory' });
  await card.locator('li', { hasText: waiting[0].entry.slice(0, 20) }).getByRole('button', { name: 'Accept into memory' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.card.attention .said').length === 1);
  await at('story');
  await card.getByRole('button', { name: 'Refuse' }).click();
  await card.waitFor({ state: 'detached' });
  assert.equal(JSON.parse(quipu('learn', '--list', '--json')).proposals.length, 0);
  assert.ok(read(waiting[0].to.split('#')[0]).includes(waiting[0].entry));
  assert.ok(!read(waiting[1].to.split('#')[0]).includes(waiting[1].entry));
  assert.deepEqual(wrong, []);
});

test('a contradiction inside memory is waived with a reason', async () => {
  const { page, at, quipu, wrong } = await stage(storied);
  await at('story');
  const conflict = page.locator('.conflict', { hasText: 'age' });
  await conflict.getByRole('button', { name: 'This is intended' }).click();
  await page.getByRole('textbox', { name: 'Why are both right?' }).fill('He lies about it.');
  await page.getByRole('dialog').getByRole('button', { name: 'This is intended' }).click();
  await conflict.waitFor({ state: 'detached' });
  assert.match(quipu('waive', '--list'), /He lies about it/);
  assert.deepEqual(wrong, []);
});

test('a todo is added with its details, and changed', async () => {
  const { page, at, quipu, wrong } = await stage(relay);
  const todo = (title) => JSON.parse(quipu('todo', 'list', '--all', '--json')).todos.find((one) => one.title === title);
  await at('work');
  await page.getByRole('button', { name: 'With details' }).click();
  const dialog = page.getByRole('dialog');
  await accessible(page, 'the form');
  await dialog.getByLabel('Title').fill('Print it');
  await dialog.getByLabel('Description').fill('on paper');
  await dialog.getByLabel('Due').fill('2027-01-31');
  await dialog.getByLabel('Tags').fill('core paper');
  await dialog.getByRole('button', { name: 'Add' }).click();
  await page.locator('.todo', { hasText: 'Print it' }).waitFor();
  const added = todo('Print it');
  assert.deepEqual([added.description, added.due, added.tags], ['on paper', '2027-01-31', ['core', 'paper']]);
  await page.getByRole('button', { name: 'Edit: Print it' }).click();
  await dialog.getByLabel('Title').fill('Print all of it');
  await dialog.getByLabel('Add a note about progress').fill('half is done');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.locator('.todo', { hasText: 'Print all of it' }).waitFor();
  const changed = todo('Print all of it');
  assert.equal(changed.id, added.id);
  assert.match(changed.notes, /half is done/);
  assert.equal(changed.description, 'on paper');
  assert.deepEqual(wrong, []);
});
});

describe('a file is edited in the page', { concurrency: 3 }, () => {
const dialog = (page) => page.getByRole('dialog');

test('it is replaced on the version that was read, and never over a newer one', async () => {
  const { page, at, quipu, read, wrong } = await stage(plain);
  await at('memory', { path: 'notes/a.md' });
  await page.getByRole('button', { name: 'Edit' }).click();
  const text = dialog(page).getByLabel('Text');
  assert.equal(await text.inputValue(), '# A\n\nthree\n');
  await accessible(page, 'the editor');
  quipu('write', 'notes/a.md', '--text', '# A\n\nmeanwhile');
  await text.fill('# A\n\nfour\n');
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await dialog(page).locator('.fault').waitFor();
  assert.match(read('notes/a.md'), /meanwhile/);
  assert.equal(await text.inputValue(), '# A\n\nfour\n', 'the text is not lost');
  await page.keyboard.press('Escape');
  await page.locator('.text').getByText('meanwhile').waitFor();
  await page.getByRole('button', { name: 'Edit' }).click();
  await text.fill('# A\n\nfour\n');
  await dialog(page).getByLabel('Reason').fill('one more');
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await page.locator('.text').getByText('four').waitFor();
  assert.equal(read('notes/a.md'), '# A\n\nfour\n');
  assert.match(quipu('log', 'notes/a.md', '-n', '1'), /person.*one more/s);
  assert.deepEqual(wrong, []);
});

test('it is extended or amended where its class allows no more', async () => {
  const { page, at, read, quipu, wrong } = await stage(() => { const made = plain(); made.quipu('write', 'notes/dos.md', '--text', 'a\r\nb\r'); return made; });
  await at('memory', { path: 'log.md' });
  await page.getByRole('button', { name: 'Append …' }).click();
  await dialog(page).getByLabel('Text').fill('third entry');
  await dialog(page).getByRole('button', { name: 'Append' }).click();
  await page.locator('.text').getByText('third entry').waitFor();
  assert.equal(read('log.md'), 'first entry\nsecond entry\nthird entry\n');
  await at('memory', { path: 'rules.md' });
  await page.getByRole('button', { name: 'Amend' }).click();
  await dialog(page).getByLabel('Text').fill('# Rules\n\nSpeak up.\n');
  await dialog(page).getByLabel('Reason').fill('nobody heard it');
  await dialog(page).getByRole('button', { name: 'Amend' }).click();
  await page.locator('.text').getByText('Speak up.').waitFor();
  assert.match(quipu('log', 'rules.md', '-n', '1'), /amend .*nobody heard it/s);
  await at('memory', { path: 'notes/dos.md' });
  await page.getByRole('button', { name: 'Edit' }).click();
  await dialog(page).getByLabel('Text').fill('a\nc\n');
  await dialog(page).getByRole('button', { name: 'Save' }).click();
  await dialog(page).waitFor({ state: 'detached' });
  assert.equal(read('notes/dos.md'), 'a\r\nc\r\n');
  assert.deepEqual(wrong, []);
});
});

describe('looks', () => {
test('dark and narrow, and in Chinese, the new parts are readable and fit', async () => {
  const made = storied();
  made.write('manuscripts/ch01.md', '# One\n\nJoss Arden looked at the rope.\n');
  made.quipu('status', '--json');
  edit(made, 'manuscripts/ch01.md', (text) => text.replace('rope', 'bell'));
  const server = await serve(made.folder);
  open.push(async () => { await server.stop(); made.remove(); });
  for (const options of [{ dark: true, width: 360, height: 780 }, { locale: 'zh-CN', width: 390, height: 844 }]) {
    const { page, at, wrong, close } = await visit(browser, server, options);
    for (const [view, query] of [['now'], ['memory', { path: 'manuscripts/ch01.md' }], ['story'], ['story', { tab: 'people', name: 'Joss' }], ['story', { tab: 'time' }], ['story', { tab: 'knows' }]]) {
      await at(view, query);
      const where = `${view} ${JSON.stringify(query ?? {})} ${JSON.stringify(options)}`;
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${where} is ${wide} wide in ${room}`);
      await accessible(page, where);
    }
    await page.locator('button.find').click();
    await page.locator('dialog input').fill('rope');
    await page.locator('dialog mark').first().waitFor();
    await accessible(page, 'search');
    assert.deepEqual(wrong, []);
    await close();
  }
});
});

describe('search and story', { concurrency: 3 }, () => {
test('paths, words and passages are found from any view', async () => {
  const { page, at, wrong } = await stage(novel);
  await at('work');
  await page.keyboard.press('/');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  await dialog.getByRole('searchbox').fill('ch02');
  await dialog.getByRole('region', { name: 'Paths' }).getByRole('link', { name: 'manuscripts/ch02.md' }).waitFor();
  await dialog.getByRole('searchbox').fill('A WOMAN called odile');
  const hit = dialog.getByRole('region', { name: 'Exact text' }).getByRole('link');
  await hit.filter({ hasText: 'manuscripts/ch01.md:8' }).waitFor();
  assert.equal((await hit.locator('mark').first().textContent()).toLowerCase(), 'a woman called odile');
  await dialog.getByRole('searchbox').fill('who cut the bell rope?');
  await dialog.getByRole('region', { name: 'Meaning' }).getByRole('link').first().waitFor();
  await accessible(page, 'search');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await page.locator('.lines tr.marked').waitFor();
  assert.deepEqual(wrong, []);
});

test('a find that is replaced gives the focus back, and Enter opens what is asked now', async () => {
  const { page, at, wrong } = await stage(novel);
  await at('work');
  await page.keyboard.press('/');
  const dialog = page.getByRole('dialog', { name: 'Search' });
  const exact = dialog.getByRole('region', { name: 'Exact text' });
  await dialog.getByRole('searchbox').fill('A WOMAN called odile');
  await exact.getByRole('link').first().waitFor();
  let answer;
  const answered = new Promise((done) => { answer = done; });
  await page.route('**/search?*', async (route) => { await answered; await route.continue(); });
  await dialog.getByRole('searchbox').fill('who cut the bell rope?');
  await exact.and(page.locator('[aria-busy=true]')).waitFor();
  await exact.getByRole('link').first().focus();
  answer();
  await exact.and(page.locator('[aria-busy=false]')).waitFor();
  await page.locator('dialog input:focus').waitFor();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await page.locator('.lines tr.marked').waitFor();
  await page.keyboard.press('/');
  await dialog.getByRole('searchbox').fill('ch02');
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'manuscripts/ch02.md' }).waitFor();
  assert.deepEqual(wrong, []);
});

test('a sheet, the timeline and who knows what come from memory', async () => {
  const { page, at, wrong } = await stage(storied);
  await at('story', { tab: 'people' });
  await page.getByLabel('Name or alias').fill('the ferryman');
  await page.getByLabel('At the end of chapter').fill('ch03');
  await page.getByRole('button', { name: 'Show' }).click();
  const card = page.locator('.card', { hasText: 'Joss Arden' });
  await card.getByText('prison').waitFor();
  assert.equal(await card.getByText('the landing').count(), 0, 'it ended in chapter 3');
  // Two ages at one time: each line says which other line it contradicts.
  const ages = card.locator('li.fact', { hasText: 'age' });
  await ages.locator('.bad').first().waitFor();
  assert.deepEqual(await ages.locator('.bad a').allTextContents(), ['characters.md:9', 'characters.md:8']);
  assert.match(await ages.locator('.bad').first().textContent(), /contradicts.*aged 41 and 52 within one year/s);
  assert.equal(await card.locator('li.fact', { hasText: 'where' }).locator('.bad').count(), 0, 'one place at a time is no contradiction');
  await accessible(page, 'a sheet');
  await at('story', { tab: 'time' });
  await page.locator('.timeline > li', { hasText: 'ch01' }).getByText('Joss finds the rope cut').waitFor();
  await page.locator('.timeline > li', { hasText: 'ch03' }).getByText('where: prison').waitFor();
  await accessible(page, 'the timeline');
  await at('story', { tab: 'knows', at: 'ch02' });
  await page.locator('.card', { hasText: 'Pell' }).getByText('Joss cut the rope').waitFor();
  assert.equal(await page.getByText('who cut the rope').count(), 0, 'nobody knows it yet');
  await accessible(page, 'who knows what');
  assert.deepEqual(wrong, []);
});

test('values over the chapters, the last meeting, relations and the continuity report', async () => {
  const { page, at, wrong } = await stage(storied);
  await at('story', { tab: 'people', name: 'Joss' });
  await page.locator('.card', { hasText: 'Joss Arden' }).getByRole('link', { name: 'where' }).first().click();
  const over = page.locator('.card', { hasText: 'Over the chapters: where' });
  await over.getByText('prison').waitFor();
  assert.deepEqual(await over.locator('li .row span:first-child').allTextContents(), ['the landing', 'prison']);
  await page.getByLabel('With whom').fill('Pell');
  await page.locator('.card', { hasText: 'Last met' }).getByRole('button', { name: 'Show' }).click();
  await page.locator('.card', { hasText: 'Last met' }).getByText('who stands at the rail').waitFor();
  await accessible(page, 'a sheet with a meeting');
  // A thing without a section has its holder, and no place that leads nowhere.
  await at('story', { tab: 'people', name: 'the brass key' });
  await page.locator('.card', { hasText: 'the brass key' }).getByRole('link', { name: 'Pell' }).waitFor();
  assert.equal(await page.getByText('null').count(), 0);
  await at('story', { tab: 'relations' });
  assert.equal(await page.locator('svg.relations text.folder').textContent(), 'friend (from ch02) / enemy (from ch03)');
  await at('story', { tab: 'relations', at: 'ch02' });
  await page.locator('ul.list li', { hasText: 'friend' }).waitFor();
  assert.equal(await page.locator('svg.relations text.folder').textContent(), 'friend (from ch02)', 'they are enemies only later');
  await page.setViewportSize({ width: 390, height: 844 });
  await page.reload();
  const drawn = await page.locator('svg.relations').boundingBox();
  assert.ok(drawn.x >= 0 && drawn.x + drawn.width <= 390, JSON.stringify(drawn));
  await accessible(page, 'relations');
  await at('story', { tab: 'report' });
  const inside = page.locator('.card', { hasText: 'Contradictions inside memory' });
  await inside.getByText('age: 41').waitFor();
  await accessible(page, 'the continuity report');
  await inside.getByRole('button', { name: 'This is intended' }).first().click();
  await page.getByRole('textbox', { name: /Why are both right/ }).fill('He lies about it.');
  await page.getByRole('dialog').getByRole('button', { name: 'This is intended' }).click();
  await inside.getByText('None found.').waitFor();
  assert.deepEqual(wrong, []);
});
});
