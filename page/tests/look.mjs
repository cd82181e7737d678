// Pictures of every view, for people to look at: node tests/look.mjs FOLDER OUT [view …]
import { launch, serve, visit } from './stage.mjs';

const [folder, out, ...only] = process.argv.slice(2);
const server = await serve(folder);
const browser = await launch();
const forms = { light: {}, dark: { dark: true }, narrow: { width: 360, height: 780 }, chinese: { locale: 'zh-CN' } };
const views = process.env.LOOK ? JSON.parse(process.env.LOOK) : { now: ['now'], flow: ['flow'], memory: ['memory'], graph: ['graph'], story: ['story'], work: ['work'], journal: ['journal'] };
for (const [form, options] of Object.entries(forms)) {
  if (only.length && !only.includes(form)) continue;
  const { page, at, wrong } = await visit(browser, server, options);
  for (const [name, [view, query]] of Object.entries(views)) {
    await at(view, query ?? {});
    await page.waitForTimeout(700);
    await page.screenshot({ path: `${out}/${name}-${form}.png`, fullPage: false });
  }
  if (wrong.length) console.log(form, wrong);
}
await browser.close();
await server.stop();
