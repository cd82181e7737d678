// The page in a real browser: every view, by light and dark, narrow, in Chinese, with hostile files.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { launch, serve, visit } from './stage.mjs';
import { BAD_PATH, book, forget, hostile, novel, relay, review, web, worldlog } from './projects.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser;
const open = [];

/** A project, served and visited, until the tests are over. */
async function stage(make, options) {
  const made = make();
  const server = await serve(made.folder);
  open.push(async () => { await server.stop(); made.remove(); });
  const seen = await visit(browser, server, options);
  return { ...made, ...seen, server };
}

const EVERYTHING = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
// What depends on colours and width.
const LOOKS = ['color-contrast', 'target-size', 'scrollable-region-focusable'];

async function accessible(page, where, rules) {
  await page.evaluate(axe);
  const found = await page.evaluate((runOnly) => globalThis.axe.run(document, { runOnly, resultTypes: ['violations'] }), rules);
  const told = found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join(' | ')}`);
  assert.deepEqual(told, [], where);
}

async function fits(page, where) {
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= room, `${where} is ${wide} wide in ${room}`);
}

// A browser that hangs must not keep everyone waiting.
setTimeout(() => process.exit(1), 280_000).unref();
before(async () => { browser = await launch(); });
after(async () => {
  await browser.close();
  await Promise.all(open.map((end) => end()));
  forget();
});

describe('every view', { concurrency: 3 }, () => {
  const tours = {
    book: [book, [['now'], ['flow'], ['flow', { step: 'write', unit: 'ch01', tab: 'plan' }], ['flow', { step: 'outline' }], ['memory'], ['memory', { path: 'outline-draft.md' }], ['journal']]],
    novel: [novel, [['memory', { path: 'characters.md', tab: 'links' }], ['memory', { path: 'characters.md', tab: 'blame' }], ['graph', { node: 'characters.md' }], ['story']]],
    relay: [relay, [['now'], ['work'], ['work', { tab: 'decisions' }]]],
    review: [review, [['work'], ['flow']]],
    worldlog: [worldlog, [['work', { tab: 'sessions' }], ['work', { tab: 'metrics' }]]],
  };
  // In Chinese the tree and the colours are the same.
  const forms = { light: [{}, EVERYTHING], 'dark and narrow': [{ dark: true, width: 360, height: 780 }, LOOKS], chinese: [{ locale: 'zh-CN' }, null] };
  for (const [name, [make, places]] of Object.entries(tours)) {
    test(`${name} is readable by anyone`, async () => {
      const made = make();
      const server = await serve(made.folder);
      open.push(async () => { await server.stop(); made.remove(); });
      for (const [form, [options, rules]] of Object.entries(forms)) {
        const { page, at, wrong, close } = await visit(browser, server, options);
        for (const [view, query] of places) {
          const where = `${name}, ${view} ${JSON.stringify(query ?? {})}, ${form}`;
          await at(view, query);
          assert.equal(await page.locator('.fault').count(), 0, `${where}: ${await page.locator('.fault').allTextContents()}`);
          assert.ok((await page.locator('main .hint').first().textContent()).length > 20, where);
          await fits(page, where);
          if (rules) await accessible(page, where, rules);
        }
        if (form === 'chinese') assert.match(await page.locator('nav').textContent(), /现在.*记忆.*日志/);
        assert.deepEqual(wrong, [], `${name}, ${form}`);
        await close();
      }
    });
  }
});

describe('what a person does', { concurrency: 3 }, () => {
test('a person sends work back, with a reason', async () => {
  const { page, quipu, wrong } = await stage(book);
  await page.getByRole('button', { name: 'Reject' }).click();
  await page.getByRole('textbox').fill('Chapter two comes first.');
  await page.getByRole('button', { name: 'Send it back' }).click();
  await page.getByText('No decision waits for you. Ready for an agent: 1.').waitFor();
  assert.match(quipu('log', '-n', '3'), /Chapter two comes first/);
  assert.deepEqual(wrong, []);
});

test('a person approves on the page, and the page hears what others do', async () => {
  const { page, quipu, wrong } = await stage(book);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' });
  assert.match(JSON.stringify(JSON.parse(quipu('status', '--json')).flow), /"approve-outline","unit":null\},"state":"done"/);
  await page.evaluate(() => { location.hash = '#/flow'; });
  await page.locator('button[aria-label="research ch01: ready"]').waitFor();
  quipu('run', '--by', 'rehearse', '--until', 'research', '--unit', 'ch01');
  await page.locator('button[aria-label="research ch01: done"]').waitFor();
  await page.locator('button[aria-label="research ch01: done"]').click();
  await page.getByRole('tab', { name: 'Brief' }).click();
  await page.locator('.paper').waitFor();
  await page.getByRole('tab', { name: 'What it reads' }).click();
  assert.ok(await page.locator('.pointers li').count() > 0);
  assert.deepEqual(wrong, []);
});

test('a person reads the comments of a review, and goes to their lines', async () => {
  const { page, wrong } = await stage(review);
  await page.evaluate(() => { location.hash = '#/work?tab=review'; });
  await page.getByRole('heading', { name: /comments: \d+$/ }).first().waitFor();
  const first = page.locator('li[id^="c-"]').first();
  assert.ok((await first.locator('blockquote').textContent()).trim().length > 0);
  await first.locator('a').first().click();
  await page.waitForFunction(() => location.hash.startsWith('#/memory') && location.hash.includes('manuscript.md'));
  assert.deepEqual(wrong, []);
});

test('a run is seen while it goes on', async () => {
  const { page, start, wrong } = await stage(book);
  await page.getByText('No agent is running').waitFor();
  const run = start('run', '--step', 'outline', '--again', '--by', 'command:sh -c "echo thinking; sleep 30"');
  await page.locator('.said', { hasText: 'thinking' }).waitFor();
  assert.match(await page.locator('main').textContent(), /outline\s*sh\s*\d+ s/);
  await page.getByText('architect (sh)').waitFor();
  await run.stop();
  await page.getByText('No agent is running').waitFor();
  await page.getByText('No leases, no open sessions').waitFor();
  assert.deepEqual(wrong, []);
});

test('workers are seen with the steps they are at', async () => {
  const { page, start, quipu, wrong } = await stage(book);
  await page.getByText('No agent is running').waitFor();
  const worker = start('worker', '--by', 'command:sh -c "echo thinking; sleep 30"', '--jobs', '1', '--flow', 'book');
  await page.locator('.worker', { hasText: 'waits for something to do' }).waitFor();
  quipu('approve', 'approve-outline');
  await page.locator('.worker', { hasText: 'research · ch01' }).waitFor();
  const [told] = JSON.parse(quipu('fleet', 'status', '--json')).workers;
  assert.equal(told.alive, true);
  assert.deepEqual(told.claims.map((claim) => [claim.step, claim.unit]), [['research', 'ch01']]);
  await worker.stop();
  await page.locator('.worker').waitFor({ state: 'detached' });
  await page.getByText('No leases, no open sessions').waitFor();
  assert.deepEqual(wrong, []);
});

test('a file goes back to any version, after a look at what changes', async () => {
  const { page, at, quipu, read, wrong } = await stage(() => {
    const made = novel();
    for (const text of ['one', 'two', 'three']) made.quipu('write', 'drafts/ch06-draft.md', '--text', `# Draft\n\n${text} [→ characters.md]\n`);
    return made;
  });
  await at('memory', { q: 'ch06-d' });
  await page.getByRole('link', { name: 'drafts/ch06-draft.md' }).click();
  await page.locator('.text').getByText('three').waitFor();
  await page.locator('.text a', { hasText: 'characters.md' }).waitFor();
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('ArrowLeft');
  await page.locator('.text').getByText('two').waitFor();
  await page.getByRole('button', { name: 'Compare with now' }).click();
  await page.locator('.diff .added', { hasText: 'three' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Restore this version' }).click();
  await page.locator('dialog .diff .added', { hasText: 'two' }).waitFor();
  await page.getByRole('button', { name: 'Restore', exact: true }).click();
  await page.getByText('version 4 of 4').waitFor();
  assert.match(read('drafts/ch06-draft.md'), /two/);
  assert.match(quipu('log', 'drafts/ch06-draft.md', '-n', '1'), /restore .*person/);
  await at('memory', { path: 'characters.md', tab: 'links' });
  await page.getByText('drafts/ch06-draft.md:3').waitFor();
  assert.deepEqual(wrong, []);
});

test('todos move by hand and by key, through commits', async () => {
  const { page, at, quipu, wrong } = await stage(relay);
  const status = (id) => JSON.parse(quipu('todo', 'list', '--all', '--json')).todos.find((todo) => todo.id === id)?.status;
  await at('work');
  await page.locator('.todo', { hasText: 'Write the parser' }).dragTo(page.locator('[data-status="in_progress"]'));
  await page.locator('[data-status="in_progress"] .todo', { hasText: 'Write the parser' }).waitFor();
  assert.equal(status('todo-1'), 'in_progress');
  await page.getByLabel('Move to: Name the release').selectOption('blocked');
  await page.getByRole('textbox', { name: 'Why is it blocked?' }).fill('no name yet');
  await page.getByRole('dialog').getByRole('button', { name: 'Blocked' }).click();
  await page.locator('[data-status="blocked"] .todo', { hasText: 'Name the release' }).waitFor();
  assert.equal(status('todo-2'), 'blocked');
  await page.getByPlaceholder('What is to be done?').fill('Ship <b>it</b>');
  await page.getByRole('button', { name: 'Add' }).click();
  await page.locator('[data-status="pending"] .todo', { hasText: 'Ship <b>it</b>' }).waitFor();
  await page.getByRole('tab', { name: 'Decisions' }).click();
  await page.getByText('replaced by').waitFor();
  assert.deepEqual(wrong, []);
});

test('a contradiction is shown beside what it contradicts', async () => {
  const { page, at, read, wrong } = await stage(novel);
  await at('story');
  assert.match(read('characters.md'), /handed: left/);
  await page.getByRole('textbox').fill('Joss Arden signed the register with his right hand.');
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.locator('.conflict .sides').waitFor();
  assert.match(await page.locator('.conflict').first().textContent(), /characters\.md:\d+/);
  await page.getByText('overdue').first().waitFor();
  assert.ok(await page.locator('.plot canvas').count() > 0);
  assert.deepEqual(wrong, []);
});

test('the journal is searched, verified, and leads back', async () => {
  const { page, at, quipu, server, wrong } = await stage(relay);
  await at('journal');
  await page.getByRole('button', { name: 'Verify everything' }).click();
  await page.getByText('no problems found').waitFor();
  await page.getByLabel('Actor', { exact: true }).fill('ada');
  await page.waitForFunction(() => [...document.querySelectorAll('.entry')].every((entry) => entry.textContent.includes('ada')));
  await page.getByLabel('Actor', { exact: true }).fill('');
  await page.getByLabel('File', { exact: true }).fill('decisions.md');
  await page.waitForFunction(() => document.querySelectorAll('.entry').length === 3);
  const second = page.locator('.entry', { hasText: 'decisions.md' }).nth(1);
  await second.locator('button.seq').click();
  await second.getByRole('button', { name: 'What changed' }).click();
  await page.locator('.diff .added', { hasText: 'Sign in with tokens' }).waitFor();
  await page.keyboard.press('Escape');
  // Decisions only ever grow: it is not offered, and refused to one who asks anyway.
  assert.equal(await second.getByRole('button', { name: 'Restore this version' }).count(), 0);
  const refused = await fetch(`${server.origin}/api/call`, {
    method: 'POST', headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ operation: 'restore', arguments: { path: 'decisions.md', at: '~1' } }),
  });
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /append-only/);
  await page.getByLabel('File', { exact: true }).fill('todos.json');
  await page.waitForFunction(() => document.querySelectorAll('.entry').length === 5);
  const older = page.locator('.entry', { hasText: 'todos.json' }).nth(1);
  await older.locator('button.seq').click();
  await older.getByRole('button', { name: 'Restore this version' }).click();
  await page.locator('dialog .diff .added').first().waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Restore', exact: true }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.match(quipu('log', '-n', '1'), /restore .*person/);
  assert.match(quipu('decisions'), /ADR-002/);
  assert.deepEqual(wrong, []);
});

test('files are never markup, whatever an agent writes', async () => {
  const { page, at, wrong, server } = await stage(hostile);
  await page.evaluate(() => { globalThis.pwned = () => { globalThis.broken = true; }; });
  const clean = async (where) => {
    const found = await page.evaluate(() => ({
      broken: Boolean(globalThis.broken),
      made: [...document.querySelectorAll('main script, main iframe, main svg[onload], main [onerror], main img, main object, main embed, main style')].length,
      links: [...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href')).filter((href) => !/^(#|https?:\/\/)/.test(href)),
    }));
    assert.deepEqual(found, { broken: false, made: 0, links: [] }, where);
  };
  for (const [view, query] of [['now'], ['memory'], ['memory', { path: 'notes/a.md' }], ['memory', { path: 'notes/a.md', tab: 'source' }], ['memory', { path: 'notes/a.md', tab: 'blame' }],
    ['memory', { path: 'notes/a.md', tab: 'links' }], ['memory', { path: BAD_PATH }], ['memory', { path: 'notes/wide.md' }], ['memory', { path: 'notes/long.txt' }], ['memory', { path: 'notes/binary.bin' }], ['graph'], ['journal'], ['story'], ['work'], ['flow']]) {
    await at(view, query);
    await clean(`${view} ${JSON.stringify(query ?? {})}`);
    await fits(page, view);
  }
  await at('memory', { path: 'notes/a.md' });
  assert.match(await page.locator('.text').textContent(), /<script>pwned\(\)<\/script> heading/);
  assert.equal(await page.locator('.text a[href^="https://example.org/"]').getAttribute('rel'), 'noopener noreferrer nofollow');
  await at('memory', { path: 'notes/long.txt' });
  assert.ok(await page.locator('.lines tr').count() <= 1000, 'a long file is shown in windows');
  await page.getByRole('button', { name: /more lines/ }).click();
  await page.waitForFunction(() => document.querySelectorAll('.lines tr').length === 1000);
  for (const path of ['../../etc/passwd', '.quipu/journal/00000001.jsonl', '/etc/passwd', 'notes/../../x']) {
    const told = await fetch(`${server.origin}/api/file?path=${encodeURIComponent(path)}`, { headers: { authorization: `Bearer ${server.token}` } });
    assert.ok([400, 403, 404].includes(told.status), `${path}: ${told.status}`);
  }
  assert.deepEqual(wrong, []);
});

test('a thousand files are a picture, and a window of files is quick to fill', async () => {
  const { page, at, wrong } = await stage(web);
  // Reading very many links takes longer than a request may: the page asks again.
  await page.route('**/api/graph*', (route) => route.fulfill({ status: 504, contentType: 'application/json', body: '{"error":"late"}' }), { times: 1 });
  await at('graph');
  await page.locator('canvas.graph[data-settled="yes"]').waitFor();
  assert.match(await page.locator('main').textContent(), /1002 files.*201 orphans, 1 dense/);
  await page.getByPlaceholder('Find a file').fill('pages/p77.md');
  await page.getByRole('heading', { name: 'pages/p77.md' }).waitFor();
  await page.getByRole('button', { name: 'Only its neighbours' }).click();
  await page.getByText('Show all').first().waitFor();
  await at('memory');
  await page.locator('.window').evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.locator('.file', { hasText: 'pages/p999.md' }).waitFor();
  assert.ok(await page.locator('.file').count() < 60, 'only the rows in sight are there');
  assert.deepEqual(wrong, []);
});

test('without the token there is nothing to see, and no one else may ask', async () => {
  const { server, context } = await stage(relay);
  const ask = (path, headers = {}, options = {}) => fetch(`${server.origin}${path}`, { ...options, headers }).then((answer) => answer.status);
  const bearer = { authorization: `Bearer ${server.token}` };
  assert.equal(await ask('/api/project', bearer), 200);
  assert.equal(await ask('/api/project'), 401);
  assert.equal(await ask('/api/events'), 401);
  assert.equal(await ask('/api/call', {}, { method: 'POST', body: '{"operation":"todo list"}' }), 401);
  assert.equal(await ask(`/api/project?token=${server.token}`), 401);
  assert.equal(await ask('/api/call', { ...bearer, 'content-type': 'text/plain' }, { method: 'POST', body: '{"operation":"todo list"}' }), 415, 'a form of another page cannot speak JSON');
  assert.equal(await ask('/api/call', { ...bearer, 'content-type': 'application/json' }, { method: 'POST', body: '{"operation":"run"}' }), 404, 'what is not offered is not there');
  assert.equal(await ask('/../../Cargo.toml'), 404);
  const stranger = await browser.newContext();
  const page = await stranger.newPage();
  await page.goto(server.origin);
  await page.getByText('This page needs its address').waitFor();
  await stranger.close();
  // Another tab of the same browser is let in by the first.
  const second = await context.newPage();
  await second.goto(`${server.origin}/#/journal`);
  await second.getByRole('button', { name: 'Verify everything' }).waitFor();
  assert.ok(!second.url().includes(server.token));
});

test('it is reached by keys, and speaks both languages, by day and by night', async () => {
  const { page, wrong } = await stage(relay);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.className), 'skip');
  await page.keyboard.press('Tab');
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  for (let nth = 0; nth < 9 && await focused() !== 'Work'; nth += 1) await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Work' }).waitFor();
  await page.getByRole('tab', { name: 'Todos' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText('ADR-002').first().waitFor();
  await page.getByRole('button', { name: '中文' }).click();
  await page.getByRole('heading', { level: 1, name: '工作' }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh');
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const day = await ground();
  await page.getByRole('button', { name: '深色或浅色' }).click();
  // The page turns dark behind the next frame.
  await page.waitForFunction((day) => getComputedStyle(document.documentElement).backgroundColor !== day, day);
  await page.reload();
  await page.getByRole('heading', { level: 1, name: '工作' }).waitFor();
  assert.notEqual(await ground(), day);
  assert.deepEqual(wrong, []);
});
});
