// What the tests stand on: projects made by the program itself, the program serving them, and a real browser.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const here = new URL('..', import.meta.url).pathname;
const target = process.env.CARGO_TARGET_DIR ?? join(process.env.XDG_CACHE_HOME ?? `${process.env.HOME}/.cache`, 'quipu/target');
export const QUIPU = process.env.QUIPU ?? join(target, 'debug/quipu');
// A test that fails half-way leaves no server behind.
const children = new Set();
process.once('exit', () => children.forEach((child) => child.kill('SIGKILL')));

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

/** The environment without a role: the page is for people. What is trusted is not kept in the home of whoever runs the tests. */
const state = mkdtempSync(join(tmpdir(), 'quipu-page-state-'));
process.once('exit', () => rmSync(state, { recursive: true, force: true }));
const nobody = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^QUIPU_(ROLE|UNIT|AGENT|LEASE|TOKEN)$/.test(name))),
  XDG_STATE_HOME: state,
};

/** A project in a folder of its own. `quipu` runs the program in it and must succeed. */
export function project(name) {
  const folder = mkdtempSync(join(tmpdir(), `quipu-page-${name}-`));
  const quipu = (...words) => {
    const { status, stdout, stderr } = spawnSync(QUIPU, words, { cwd: folder, env: nobody, encoding: 'utf8', maxBuffer: Infinity });
    // 1 is an answer: something is flagged or in conflict.
    if (status > 1 || status === null) throw new Error(`quipu ${words.join(' ')}: ${status}\n${stderr}`);
    return stdout;
  };
  /** Runs the program, which may fail. */
  const attempt = (...words) => spawnSync(QUIPU, words, { cwd: folder, env: nobody, encoding: 'utf8' });
  /** Runs the program beside the test; `stop` ends it as Ctrl-C would. */
  const start = (...words) => {
    const child = spawn(QUIPU, words, { cwd: folder, env: nobody, stdio: 'ignore' });
    children.add(child);
    return { stop: () => new Promise((done) => { child.once('exit', done); child.kill('SIGINT'); }) };
  };
  const write = (path, text) => { mkdirSync(dirname(join(folder, path)), { recursive: true }); writeFileSync(join(folder, path), text); };
  const read = (path) => readFileSync(join(folder, path), 'utf8');
  return { folder, quipu, try: attempt, start, write, read, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Serves a folder until `stop`. */
export async function serve(folder, more = {}) {
  const child = spawn(QUIPU, ['serve', '--json'], { cwd: folder, env: { ...nobody, ...more }, stdio: ['ignore', 'pipe', 'inherit'] });
  children.add(child);
  child.once('exit', () => children.delete(child));
  const lines = createInterface({ input: child.stdout });
  const [first] = await Promise.race([
    lines[Symbol.asyncIterator]().next().then(({ value }) => [value]),
    new Promise((_, fail) => { child.once('exit', (code) => fail(new Error(`quipu serve ended with ${code}`))); }),
  ]);
  const { url } = JSON.parse(first);
  const stop = () => new Promise((done) => { child.once('exit', done); child.kill('SIGTERM'); });
  return { url, origin: new URL(url).origin, token: url.split('token=')[1], pid: child.pid, stop };
}

export function launch() {
  if (!CHROMIUM) throw new Error('chromium is not installed: apt-get install chromium');
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/** A page that fails the test on any error, any broken policy and any request to someone else. */
export async function visit(browser, server, { width = 1280, height = 860, locale = 'en-GB', dark = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, locale, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce' });
  // Long, for a machine that does other things as well: it is only ever waited for in vain by a test that fails.
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error' && !/status of (4[0-9]{2}|504)/.test(message.text())) wrong.push(message.text()); });
  page.on('request', (request) => { if (!request.url().replace(/^blob:/, '').startsWith(server.origin)) wrong.push(`asked ${request.url()}`); });
  page.on('dialog', (dialog) => { wrong.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  if (process.env.PAGE_FROM_DISK) {
    // While one works on the page: files as they are on disk, the rest from the program.
    const kinds = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html' };
    await page.route((address) => !address.pathname.startsWith('/api/'), async (route) => {
      const path = new URL(route.request().url()).pathname;
      const file = join(here, 'www', path === '/' ? 'index.html' : path);
      if (!existsSync(file)) return route.continue();
      const headers = (await (await fetch(server.origin)).headers);
      await route.fulfill({ body: readFileSync(file), headers: { 'content-security-policy': headers.get('content-security-policy'), 'content-type': `${kinds[file.split('.').pop()] ?? 'text/plain'}; charset=utf-8` } });
    });
  }
  await page.goto(server.url);
  await page.waitForSelector('main h1');
  const at = async (view, query = {}) => {
    await page.evaluate((hash) => { location.hash = hash; }, `#/${view}?${new URLSearchParams(query)}`);
    await page.waitForFunction(() => !document.querySelector('main [role="status"].empty'));
    await page.waitForTimeout(50);
  };
  return { page, context, wrong, at, close: () => context.close() };
}
