// How long the page waits on a large project: node tests/large.mjs 100000. Prints, asserts nothing.

import { project, launch, serve, visit } from './stage.mjs';

const number = Number(process.argv[2] ?? 100_000);
const made = project('large');
const path = (nth) => `pages/${String(Math.floor(nth / 1000)).padStart(3, '0')}/p${nth}.md`;
made.write('quipu.toml', 'quipu = 1\n\n[[files]]\npath = "**/*.md"\nclass = "state"\n');
for (let nth = 0; nth < number; nth += 1) made.write(path(nth), `# Page ${nth}\n\n- a fact about ${nth} [→ ${path((nth * 7 + 1) % number)}]\n`);
made.quipu('status', '--json');

const server = await serve(made.folder);
const middle = Math.floor(number / 2);
for (const address of ['project', 'now', 'files', `files?offset=${middle}`, 'files?q=p77', `file?path=${path(middle)}`, 'journal', 'graph', 'graph', `links?path=${path(middle)}`]) {
  const begun = performance.now();
  const answer = await fetch(`${server.origin}/api/${address}`, { headers: { authorization: `Bearer ${server.token}` } });
  const length = (await answer.text()).length;
  console.log(address.padEnd(40), answer.status, `${Math.round(performance.now() - begun)} ms`, `${length} bytes`);
}
const browser = await launch();
const begun = performance.now();
const { page, at } = await visit(browser, server);
console.log('the frame of the page stands after', Math.round(performance.now() - begun), 'ms');
await at('memory');
await page.locator('.file').first().waitFor();
console.log('the files are there after', Math.round(performance.now() - begun), 'ms');
await browser.close();
await server.stop();
made.remove();
