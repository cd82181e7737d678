// A published book in a real browser, opened from disk: searching, the theme, copying, printing, links to the source, and hostile chapters.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, project, serve } from './stage.mjs';

const HOSTILE = `# Leases </script><script>alert(1)</script>

A dead worker blocks nobody. 一把锁如果比主人活得更久，就会挡住所有人。\u2028

## 租约 <img src=x onerror=alert(2)>

租约会自己过期：\`source/lease.rs:2\`。

<!-- CHAPTER_FINAL -->
`;

let browser;
let book;
before(async () => {
  browser = await launch();
  book = project('published');
  book.quipu('init', '--profile', 'book');
  book.write('source/lease.rs', 'fn take() {}\nfn expire() {}\n');
  book.write('chapters/ch01.md', '# Cords\n\nA runner reads a cord.\n\n```rust\nfn main() {\n    read(\"a <cord>\");\n}\n```\n\n<!-- CHAPTER_FINAL -->\n');
  book.write('chapters/ch02.md', HOSTILE);
  book.quipu('append', 'meta/glossary.md', '--text', '| lease | a right that ends </script> by itself | ch02 | |');
  book.quipu('publish');
});
after(async () => { await browser?.close(); book?.remove(); });

async function open(options = {}) {
  const context = await browser.newContext({ locale: 'en-GB', ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') wrong.push(message.text()); });
  page.on('request', (request) => { if (!request.url().startsWith('file:')) wrong.push(`asked ${request.url()}`); });
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(pathToFileURL(join(book.folder, 'publish/ch01.html')).href);
  return { page, wrong };
}

test('the box of a page searches all of them, in both languages', async () => {
  const { page, wrong } = await open();
  await page.fill('header input', 'DEAD worker');
  await page.press('header input', 'Enter');
  await page.waitForSelector('#found li');
  assert.deepEqual(await page.locator('#found mark').allTextContents(), ['dead', 'worker']);
  await page.fill('#query', '主人');
  assert.deepEqual(await page.locator('#found mark').allTextContents(), ['主人']);
  await page.fill('#query', 'right');
  assert.equal(await page.locator('#found a').getAttribute('href'), 'glossary.html#lease');
  await page.fill('#query', 'nowhere at all');
  assert.equal(await page.textContent('#count'), 'Nothing was found');
  await page.fill('#query', '过期');
  await page.click('#found a');
  await page.click('a.place');
  assert.match(page.url(), /source\/lease\.rs\.html#L2$/);
  assert.equal(await page.textContent('.line:target'), '2fn expire() {}');
  assert.deepEqual(wrong, []);
});

test('a chosen theme is kept on every page, and automatic follows the system', async () => {
  const { page, wrong } = await open({ colorScheme: 'dark' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await paper();
  await page.getByRole('combobox', { name: 'Theme' }).selectOption('Light');
  const light = await paper();
  assert.notEqual(light, dark);
  await page.goto(page.url().replace('ch01.html', 'index.html'));
  assert.equal(await paper(), light);
  await page.goto(page.url().replace('index.html', 'source/lease.rs.html'));
  assert.equal(await paper(), light);
  assert.equal(await page.getByRole('combobox', { name: 'Theme' }).inputValue(), 'light');
  await page.getByRole('combobox', { name: 'Theme' }).selectOption('Auto');
  assert.equal(await paper(), dark);
  assert.deepEqual(wrong, []);
});

test('all chapters stand beside the text, and the one that is open is marked', async () => {
  const { page, wrong } = await open({ viewport: { width: 1280, height: 800 } });
  const list = page.getByRole('navigation', { name: 'Contents', exact: true });
  assert.equal(await list.locator('[aria-current="page"]').textContent(), 'Cords');
  assert.equal(await page.textContent('.number'), 'Chapter 1');
  const [beside, text] = [await list.boundingBox(), await page.locator('main').boundingBox()];
  assert.ok(beside.x + beside.width <= text.x && beside.y < 300, JSON.stringify([beside, text]));
  await list.getByRole('link', { name: /Leases/ }).click();
  assert.equal(await page.textContent('.number'), 'Chapter 2');
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await list.isVisible(), false);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(wrong, []);
});

test('code is copied as it was written, from disk and from the page of the project', async () => {
  const server = await serve(book.folder);
  const { page } = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
  const copied = async () => {
    await page.locator('pre').hover();
    await page.getByRole('button', { name: 'Copy' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  try {
    assert.equal(await copied(), 'fn main() {\n    read("a <cord>");\n}');
    const { book: made } = await (await fetch(`${server.origin}/api/now`, { headers: { authorization: `Bearer ${server.token}` } })).json();
    const errors = [];
    page.removeAllListeners('request');
    page.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
    await page.goto(`${server.origin}${made.contents}`);
    await page.click('main a');
    assert.equal(await copied(), 'fn main() {\n    read("a <cord>");\n}');
    await page.getByRole('combobox', { name: 'Theme' }).selectOption('Dark');
    // The browser asks for an icon that no book has.
    assert.deepEqual(errors.filter((text) => !text.includes('404')), []);
  } finally {
    await server.stop();
  }
});

test('one page has the whole book, and prints it', async () => {
  const { page, wrong } = await open();
  await page.goto(page.url().replace('ch01.html', 'index.html'));
  await page.getByRole('link', { name: /whole book on one page/ }).click();
  assert.deepEqual(await page.locator('article h1').allTextContents(), ['Cords', 'Leases </script><script>alert(1)</script>']);
  await page.evaluate(() => { globalThis.print = () => { document.title = 'printed'; }; });
  await page.getByRole('button', { name: 'Print' }).click();
  assert.equal(await page.title(), 'printed');
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('header').isVisible(), false);
  assert.deepEqual(wrong, []);
});

test('a page runs the scripts of the publisher and no other, whatever is in it', async () => {
  const { page } = await open();
  const runs = () => page.evaluate(() => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.ran = true';
    document.body.append(script);
    return globalThis.ran ?? false;
  });
  assert.equal(await runs(), false);
  await page.goto(page.url().replace('ch01.html', 'search.html'));
  assert.equal(await runs(), false);
});

test('without a script the book is readable and the search page says what it needs', async () => {
  const { page, wrong } = await open({ javaScriptEnabled: false });
  assert.match(await page.textContent('article'), /A runner reads a cord/);
  await page.fill('header input', 'cord');
  await page.press('header input', 'Enter');
  assert.match(await page.textContent('main'), /needs JavaScript/);
  assert.deepEqual(wrong, []);
});

// A real renderer, where there is one: npm install -g @mermaid-js/mermaid-cli, or its path in MMDC. It is not among the
// packages of this folder: it and Puppeteer are 268 packages of 530 MB, which take more than a minute to install, for a
// test of five seconds.
const MMDC = process.env.MMDC ?? (process.env.PATH ?? '').split(':').map((folder) => join(folder, 'mmdc')).find(existsSync);
test('a Mermaid diagram is drawn by the real renderer, in the sandbox', { skip: MMDC ? false : 'SKIPPED: mmdc is not on PATH (530 MB; npm install -g @mermaid-js/mermaid-cli)' }, async () => {
  const drawn = project('drawn');
  try {
    drawn.quipu('init', '--profile', 'book');
    const browser = JSON.stringify({ executablePath: '/usr/bin/chromium', pipe: true, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND'] });
    drawn.write('quipu.toml', `${drawn.read('quipu.toml')}
[agents.mermaid]
via = "command"
program = "${MMDC}"
args = ["-i", "{{view}}/diagram.mmd", "-o", "{{out}}/diagram.png", "-s", "2", "-b", "white", "-p", "{{home}}/browser.json"]
files = { "browser.json" = '${browser}' }
reads = ["/etc/fonts", "/etc/chromium", "/etc/chromium.d"]
`);
    drawn.write('chapters/ch01.md', '# Cords\n\n```mermaid\ngraph TD\n  A[绳结] --> B{read?}\n```\n\n<!-- CHAPTER_FINAL -->\n');
    drawn.quipu('trust', '--yes');
    const said = JSON.parse(drawn.quipu('publish', '--json'));
    assert.deepEqual(said.remarks, []);
    const picture = readFileSync(join(drawn.folder, Object.keys(said.versions).find((path) => path.endsWith('.png'))));
    // Two boxes and an arrow, not an empty picture: the width is in the header.
    assert.ok(picture.length > 2000 && picture.readUInt32BE(16) > 100, `${picture.length} bytes`);
  } finally {
    drawn.remove();
  }
});
