'use strict';
// Adds to a page what works only with a script: the choice of a theme, and buttons that copy code and print.
const said = document.currentScript.dataset;
const root = document.documentElement;
const KEY = 'quipu-book-theme';

function make(parent, name, text) {
  const element = document.createElement(name);
  element.textContent = text ?? '';
  parent.append(element);
  return element;
}

// Some browsers store nothing for a page that is opened from disk. Then a choice lasts until the next page.
function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function show(theme) {
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
  else delete root.dataset.theme;
}

function choose(theme) {
  show(theme);
  try { localStorage.setItem(KEY, theme); } catch { /* Nothing is stored. */ }
}

async function copy(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    if (!document.execCommand('copy')) return;
  }
  button.textContent = said.copied;
  setTimeout(() => { button.textContent = said.copy; }, 2000);
}

function tools() {
  const bar = make(document.querySelector('header') ?? document.body, 'div');
  bar.className = 'tools';
  if (document.body.classList.contains('print')) make(bar, 'button', said.print).addEventListener('click', () => print());
  const theme = make(bar, 'select');
  theme.setAttribute('aria-label', said.theme);
  for (const name of ['auto', 'light', 'dark']) make(theme, 'option', said[name]).value = name;
  theme.value = root.dataset.theme ?? 'auto';
  theme.addEventListener('change', () => choose(theme.value));
  for (const block of document.querySelectorAll('pre:not(.source)')) {
    const frame = document.createElement('div');
    frame.className = 'code';
    block.replaceWith(frame);
    frame.append(block);
    const button = make(frame, 'button', said.copy);
    button.addEventListener('click', () => copy(block, button));
  }
}

show(stored());
addEventListener('DOMContentLoaded', tools);
