// Makes www/vendor/ from the packages that package-lock.json pins. What it writes is checked in: users build nothing.
import { build } from 'esbuild';
import { copyFile, readFile, writeFile } from 'node:fs/promises';

const here = new URL('..', import.meta.url).pathname;
const versions = JSON.parse(await readFile(`${here}/package.json`, 'utf8')).devDependencies;

const bundles = {
  preact: ["export { h, render, Fragment } from 'preact';", "export * from 'preact/hooks';",
    "import { h } from 'preact'; import htm from 'htm'; export const html = htm.bind(h);"].join('\n'),
  'd3-force': "export { forceSimulation, forceLink, forceManyBody, forceX, forceY, forceCollide } from 'd3-force';",
  uplot: "export { default } from 'uplot';",
};

for (const [name, contents] of Object.entries(bundles)) {
  const result = await build({
    stdin: { contents, resolveDir: here }, bundle: true, minify: true, format: 'esm', target: 'es2022', write: false, legalComments: 'none',
  });
  const made = name === 'preact' ? `preact ${versions.preact}, htm ${versions.htm}` : `${name} ${versions[name]}`;
  await writeFile(`${here}/www/vendor/${name}.js`, `/* ${made}; licences in LICENSES.txt */\n${result.outputFiles[0].text}`);
}
await copyFile(`${here}/node_modules/uplot/dist/uPlot.min.css`, `${here}/www/vendor/uplot.css`);

const licences = ['preact', 'htm', 'uplot', 'd3-force', 'd3-dispatch', 'd3-quadtree', 'd3-timer'];
const texts = await Promise.all(licences.map(async (name) => `${name}\n\n${await readFile(`${here}/node_modules/${name}/LICENSE`, 'utf8')}`));
await writeFile(`${here}/www/vendor/LICENSES.txt`, texts.join('\n----\n\n'));
