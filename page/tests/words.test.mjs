// Both languages say everything.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

globalThis.localStorage ??= { getItem: () => null };
globalThis.navigator ??= { language: 'en' };
const { WORDS } = await import('../www/words.js');

test('every sentence is there in both languages, with the same blanks', () => {
  for (const [key, said] of Object.entries(WORDS)) {
    assert.equal(said.length, 2, key);
    assert.ok(said.every((text) => text.length > 0), key);
    const blanks = said.map((text) => [...text.matchAll(/\{\d\}/g)].map(([blank]) => blank).sort().join());
    assert.equal(blanks[0], blanks[1], key);
  }
});

test('every sentence that a view asks for is there', () => {
  const www = new URL('../www/', import.meta.url).pathname;
  const files = [...readdirSync(www).filter((name) => name.endsWith('.js')), ...readdirSync(`${www}views`).map((name) => `views/${name}`)];
  for (const file of files) {
    for (const [, key] of readFileSync(www + file, 'utf8').matchAll(/\bt\('([^']+)'/g)) assert.ok(WORDS[key], `${file}: ${key}`);
  }
});

test('a sentence of the engine is said in Chinese, with its names and paths', async () => {
  globalThis.document ??= { documentElement: {} };
  const { switchLanguage, language } = await import('../www/words.js');
  const { said, own, reason, who, REASONS, SENTENCES } = await import('../www/sentences.js');
  if (language() !== 'zh') switchLanguage();
  assert.equal(said('waits for research/ch01, write/ch02, which needs a person'), '等待 research/ch01, write/ch02，后者需要人处理');
  assert.equal(said('`drafts/ch01.md` does not end with FINAL or DRAFT'), '`drafts/ch01.md` 没有以 FINAL or DRAFT 结尾');
  assert.equal(said('2 objections: `a` says no (after round 3)'), '2 条异议：`a` says no（第 3 轮之后）');
  assert.equal(said('memory says left, the text shows the right hand in use'), '记忆写的是left，文中用的是另一只手');
  assert.equal(said('3 failures in a row: `a.md` was not written\nthe agent reports: ended with exit code 1'), '连续失败 3 次：`a.md` 没有写出\n智能体的程序出错而中止（退出码 1）');
  assert.equal(said('something of an agent'), 'something of an agent');
  assert.equal(said('Ann: 41 and then 52, but 0 years pass'), 'Ann：同一年内既是 41 岁又是 52 岁');
  assert.equal(reason('approved approve-outline'), '已批准 approve-outline');
  assert.equal(reason('todo add todo-1: done'), '添加待办 todo-1：done');
  assert.equal(reason('waits for the summer'), 'waits for the summer');
  assert.deepEqual(['person', 'quipu', 'architect (rehearse)', 'writer/ch01 (ada)'].map(who), ['人', 'quipu', 'architect（排练）', 'writer/ch01（ada）']);
  assert.equal(own(['write', '写作']), '写作');
  switchLanguage();
  assert.equal(said('`a` is new'), '`a` is new');
  assert.equal(said('2 failures in a row: `a.md` was not written\nthe agent reports: ended with exit code 1'), '2 failures in a row: `a.md` was not written\nthe agent\'s program stopped with an error (exit code 1)');
  assert.equal(said('2 failures in a row: the agent reports: ended with exit code 1\n`a.md` was not written'), '2 failures in a row: the agent\'s program stopped with an error (exit code 1)\n`a.md` was not written');
  assert.equal(said('the agent reports: stopped early: exit code 2: no key'), 'the agent\'s program stopped with an error (exit code 2): no key');
  for (const [pattern, ...texts] of [...SENTENCES, ...REASONS]) {
    const groups = new RegExp(`${pattern.source}|`, pattern.flags).exec('').length - 1;
    for (const text of texts) for (const [, nth] of text.matchAll(/\{(\d)\}/g)) assert.ok(Number(nth) < groups, text);
  }
});
