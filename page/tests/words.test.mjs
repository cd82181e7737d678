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
