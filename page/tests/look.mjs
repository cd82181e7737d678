// Pictures of every view, for people to look at, and contact sheets of them: node tests/look.mjs OUT [part …]
// A part is one of a name such as book-flow-wide-dark-zh: pictures with one of the parts are taken. FOLDER: another project than the usual ones, LOOK: its places, as JSON.
import { mkdirSync, readFileSync } from 'node:fs';
import { launch, serve, visit } from './stage.mjs';
import { book, forget, plain, relay, review, stopped, storied } from './projects.mjs';

const [out, ...only] = process.argv.slice(2);
const researched = () => { const made = book(); made.quipu('approve', 'approve-outline'); made.quipu('run', '--by', 'rehearse', '--until', 'research'); return made; };
const flagged = () => { const made = plain(); made.write('rules.md', `${made.read('rules.md')}\nShout.\n`); return made; };
const paper = 'research/ch01-research.md';
const PLACES = [
  ['stopped', stopped, { now: ['now'], flow: ['flow'], job: ['flow', { step: 'research', unit: 'ch01' }] }],
  ['book', researched, {
    now: ['now'], flow: ['flow'], plan: ['flow', { step: 'research', unit: 'ch01', tab: 'plan' }], memory: ['memory'], text: ['memory', { path: paper }], source: ['memory', { path: paper, tab: 'source' }],
    blame: ['memory', { path: paper, tab: 'blame' }], provenance: ['memory', { path: paper, tab: 'provenance' }], links: ['memory', { path: 'meta/style-guide.md', tab: 'links' }],
    graph: ['graph'], time: ['time'], contract: ['contract'], cell: ['contract', { file: 'outline-draft.md', of: 'architect' }], journal: ['journal'],
  }],
  ['novel', storied, {
    story: ['story'], people: ['story', { tab: 'people', name: 'Joss Arden', key: 'where', other: 'Pell' }], timeline: ['story', { tab: 'time' }], knows: ['story', { tab: 'knows' }],
    relations: ['story', { tab: 'relations' }], report: ['story', { tab: 'report' }], graph: ['graph', { node: 'characters.md' }],
  }],
  ['relay', relay, { now: ['now'], work: ['work'], decisions: ['work', { tab: 'decisions' }] }],
  ['review', review, { now: ['now'], work: ['work'] }],
  ['flagged', flagged, { now: ['now'], file: ['memory', { path: 'rules.md' }] }],
];
const SIZES = { wide: [1440, 900], tablet: [820, 1180], phone: [390, 844] };
mkdirSync(out, { recursive: true });
const browser = await launch();
const sheets = new Map();
const chosen = process.env.FOLDER ? [['project', () => ({ folder: process.env.FOLDER, remove() {} }), JSON.parse(process.env.LOOK)]] : PLACES;
for (const [project, make, places] of chosen) {
  const wanted = (name) => !only.length || only.some((part) => name.includes(part));
  const forms = Object.keys(SIZES).flatMap((size) => ['light-en', 'light-zh', 'dark-en', 'dark-zh'].map((rest) => `${size}-${rest}`));
  if (!forms.some((form) => Object.keys(places).some((name) => wanted(`${project}-${name}-${form}`)))) continue;
  const made = make();
  const server = await serve(made.folder);
  for (const [size, [width, height]] of Object.entries(SIZES)) {
    for (const dark of [false, true]) {
      for (const locale of ['en-GB', 'zh-CN']) {
        const form = `${size}-${dark ? 'dark' : 'light'}-${locale.slice(0, 2)}`;
        const shown = Object.entries(places).filter(([name]) => wanted(`${project}-${name}-${form}`));
        if (shown.length === 0) continue;
        const { page, at, wrong, close } = await visit(browser, server, { width, height, dark, locale });
        for (const [name, [view, query]] of shown) {
          await at(view, query ?? {});
          await page.waitForTimeout(500);
          const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          if (wide > room) console.log(`${project}-${name}-${form}: ${wide} wide in ${room}`);
          const path = `${out}/${project}-${name}-${form}.png`;
          await page.screenshot({ path });
          sheets.set(form, [...(sheets.get(form) ?? []), [`${project} ${name}`, path]]);
        }
        if (wrong.length) console.log(project, form, wrong);
        await close();
      }
    }
  }
  await server.stop();
  made.remove();
}
// Nine to a sheet, large enough to read.
for (const [form, pictures] of sheets) {
  const width = form.startsWith('wide') ? 720 : form.startsWith('tablet') ? 560 : 390;
  const each = form.startsWith('wide') ? 6 : 8;
  for (let nth = 0; nth * each < pictures.length; nth += 1) {
    const page = await browser.newPage({ viewport: { width: width * (each === 6 ? 2 : 4) + 40, height: 600 } });
    await page.setContent(`<body style="margin:4px;display:flex;flex-wrap:wrap;gap:6px;font:13px sans-serif">${pictures.slice(nth * each, (nth + 1) * each).map(([name, path]) => `<div>${name}<br><img width="${width}" src="data:image/png;base64,${readFileSync(path).toString('base64')}"></div>`).join('')}`);
    await page.screenshot({ path: `${out}/sheet-${form}-${nth + 1}.png`, fullPage: true });
    await page.close();
  }
}
forget();
await browser.close();
