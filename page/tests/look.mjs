// Pictures of every view, for people to look at: node tests/look.mjs FOLDER OUT [form …]. LOOK: other places, as JSON.
import { launch, serve, visit } from './stage.mjs';

const [folder, out, ...only] = process.argv.slice(2);
const server = await serve(folder);
const browser = await launch();
const sizes = { wide: [1440, 900], tablet: [820, 1180], phone: [390, 844] };
const views = process.env.LOOK ? JSON.parse(process.env.LOOK) : Object.fromEntries(['now', 'flow', 'memory', 'graph', 'story', 'work', 'time', 'contract', 'journal'].map((name) => [name, [name]]));
for (const [size, [width, height]] of Object.entries(sizes)) {
  for (const dark of [false, true]) {
    for (const locale of ['en-GB', 'zh-CN']) {
      const form = `${size}-${dark ? 'dark' : 'light'}-${locale.slice(0, 2)}`;
      if (only.length && !only.some((part) => form.includes(part))) continue;
      const { page, at, wrong, close } = await visit(browser, server, { width, height, dark, locale });
      for (const [name, [view, query]] of Object.entries(views)) {
        await at(view, query ?? {});
        await page.waitForTimeout(700);
        await page.screenshot({ path: `${out}/${name}-${form}.png`, fullPage: false });
      }
      if (wrong.length) console.log(form, wrong);
      await close();
    }
  }
}
await browser.close();
await server.stop();
