// How long the page waits on a large project, and what it holds: node tests/large.mjs 50000. Prints, asserts nothing.

import { readFileSync } from 'node:fs';
import { project, launch, serve, visit } from './stage.mjs';

const number = Number(process.argv[2] ?? 50_000);
const made = project('large');
const path = (nth) => `pages/${String(Math.floor(nth / 1000)).padStart(3, '0')}/p${nth}.md`;
made.write('quipu.toml', 'quipu = 1\n\n[[files]]\npath = "**/*.md"\nclass = "state"\n');
for (let nth = 0; nth < number; nth += 1) made.write(path(nth), `# Page ${nth}\n\n- a fact about ${nth} [→ ${path((nth * 7 + 1) % number)}]\n`);
made.quipu('status');

const server = await serve(made.folder);
const middle = Math.floor(number / 2);
for (const address of ['project', 'now', 'files', `files?offset=${middle}`, 'files?q=p77', `file?path=${path(middle)}`, 'journal', 'graph', 'graph', `links?path=${path(middle)}`]) {
  const begun = performance.now();
  const answer = await fetch(`${server.origin}/api/${address}`, { headers: { authorization: `Bearer ${server.token}` } });
  const length = (await answer.text()).length;
  console.log(address.padEnd(40), answer.status, `${Math.round(performance.now() - begun)} ms`, `${length} bytes`);
}
const memory = () => Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024);
console.log('memory of the server', memory(), 'MB');
const browser = await launch();
const begun = performance.now();
const { page, at } = await visit(browser, server);
const sizes = await page.evaluate(() => performance.getEntriesByType('resource').filter((one) => /\.(js|css|svg)$/.test(one.name)).reduce((sum, one) => sum + one.encodedBodySize, 0));
console.log('the frame of the page stands after', Math.round(performance.now() - begun), 'ms;', Math.round(sizes / 1000), 'KB came for it');

// Each interaction as a person does it: from the key or the click until what was asked for is there.
const TIMES = 7;
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const print = (name, took) => console.log(name.padEnd(40), 'median', Math.round(median(took)), 'ms, most', Math.round(Math.max(...took)), 'ms');
async function measure(name, act) {
  const took = [];
  for (let nth = 0; nth < TIMES; nth += 1) {
    const from = performance.now();
    await act(nth);
    took.push(performance.now() - from);
  }
  print(name, took);
}
const show = async (hash, selector) => { await page.evaluate((to) => { location.hash = to; }, hash); await page.locator(selector).first().waitFor(); };
await at('memory');
await page.locator('.file').first().waitFor();
await measure('open a file', (nth) => show(`#/memory?path=${path(middle + nth)}`, `h2:has-text("${path(middle + nth)}")`));
await measure('its source', (nth) => show(`#/memory?path=${path(middle + nth)}&tab=source`, '.lines .code'));
await measure('who wrote it', (nth) => show(`#/memory?path=${path(middle + nth)}&tab=blame`, '.lines .by'));
await measure('search the list', (nth) => show(`#/memory?q=p${7000 + nth}`, `.file .path:has-text("p${7000 + nth}.md")`));
await measure('folders', (nth) => show(`#/memory?order=folders&under=pages/${String(nth).padStart(3, '0')}/`, `.file .path:has-text("p${nth * 1000}.md")`));
for (const [view, selector] of [['journal', 'li.entry'], ['contract', '.card'], ['now', '.card']]) {
  const took = [];
  for (let nth = 0; nth < TIMES; nth += 1) {
    await show('#/memory', '.file');
    const from = performance.now();
    await show(`#/${view}`, selector);
    took.push(performance.now() - from);
  }
  print(view, took);
}
for (const which of ['first', 'again']) {
  const from = performance.now();
  await page.evaluate(() => { location.hash = '#/graph'; });
  await page.locator('canvas[data-zoom]').waitFor({ timeout: 120_000 });
  console.log(`the graph, ${which}:`, Math.round(performance.now() - from), 'ms');
  await at('memory');
}
console.log('memory of the server', memory(), 'MB');
await page.keyboard.press('/');
await measure('search everywhere, paths', async (nth) => { await page.locator('dialog input').fill(`p${8000 + nth}`); await page.locator(`.finds a:has-text("p${8000 + nth}.md")`).first().waitFor(); });
await page.keyboard.press('Escape');
// The search has asked for passages by meaning, too: the index of all files is built for it.
console.log('memory of the server after searching by meaning', memory(), 'MB');
await browser.close();
await server.stop();
made.remove();
