'use strict';
// Each section: address, chapter, heading, text.
const sections = JSON.parse(document.getElementById('index').textContent);
const folded = sections.map(([, chapter, heading, text]) => [(chapter + '\n' + heading).toLowerCase(), text.toLowerCase()]);
const box = document.getElementById('query');
const count = document.getElementById('count');
const list = document.getElementById('found');
const MOST = 100;

function add(parent, name, text) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  parent.append(element);
  return element;
}

// The text around the first word that was found, with every word marked.
function excerpt(parent, text, lower, words) {
  // Lower case of a few letters is longer: then the lower text is shown, for positions are its own.
  const shown = lower.length === text.length ? text : lower;
  const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0));
  let at = Number.isFinite(first) ? Math.max(0, first - 60) : 0;
  const end = Math.min(shown.length, at + 220);
  if (at > 0) parent.append('… ');
  while (at < end) {
    let next = end;
    let found = '';
    for (const word of words) {
      const place = lower.indexOf(word, at);
      if (place >= 0 && place < next) [next, found] = [place, word];
    }
    parent.append(shown.slice(at, next));
    if (found) add(parent, 'mark', shown.slice(next, next + found.length));
    at = next + found.length;
  }
  if (end < shown.length) parent.append(' …');
}

function search(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [];
  if (words.length) {
    folded.forEach(([title, text], at) => {
      if (!words.every((word) => title.includes(word) || text.includes(word))) return;
      hits.push([words.filter((word) => title.includes(word)).length, at]);
    });
    hits.sort(([a, first], [b, second]) => b - a || first - second);
  }
  list.replaceChildren();
  count.textContent = !words.length ? '' : hits.length ? count.dataset.found.replace('#', hits.length) : count.dataset.nothing;
  for (const [, at] of hits.slice(0, MOST)) {
    const [address, chapter, heading, text] = sections[at];
    const item = add(list, 'li');
    add(item, 'a', heading ? chapter + ' · ' + heading : chapter).href = address;
    excerpt(add(item, 'p'), text, folded[at][1], words);
  }
}

box.value = new URLSearchParams(location.search).get('q') ?? '';
box.addEventListener('input', () => search(box.value));
search(box.value);
