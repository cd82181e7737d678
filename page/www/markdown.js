// A file's tree of elements, built node by node. Only the names below become elements; everything else is text.

import { html, h, useEffect, useState } from './vendor/preact.js';
import { getPicture } from './api.js';
import { fileAt } from './ui.js';
import { t } from './words.js';

const ELEMENTS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'ol', 'ul', 'li', 'table', 'thead', 'tr', 'td', 'em',
  'strong', 's', 'a', 'span', 'code', 'token', 'sup', 'br', 'hr']);
const TOKENS = new Set(['c', 's', 'n', 'k', 't', 'f']);

const isPlain = (address) => /^https?:\/\//i.test(address);

function grow(node, nth, inHead) {
  if (typeof node === 'string') return node;
  if (!Array.isArray(node)) return null;
  const [name, given = {}, ...rest] = node;
  const children = rest.map((child, at) => grow(child, at, inHead || name === 'thead'));
  if (!ELEMENTS.has(name)) return children;
  switch (name) {
    case 'a': return link(given ?? {}, children);
    case 'td': return h(inHead ? 'th' : 'td', { key: nth, scope: inHead ? 'col' : undefined }, children);
    case 'thead': return h('thead', { key: nth }, h('tr', {}, children));
    case 'table': return html`<div class="wide" tabIndex="0" role="group"><table>${children}</table></div>`;
    case 'ol': return h('ol', { key: nth, start: Number(given.start) || 1 }, children);
    case 'pre': return h('pre', { key: nth, tabIndex: 0 }, h('code', {}, children));
    case 'code': return h('code', { key: nth, class: given.class === 'raw' ? 'raw' : undefined }, children);
    case 'token': return h('span', { class: TOKENS.has(given.class) ? `t-${given.class}` : undefined }, children);
    case 'span': return typeof given.file === 'string' ? html`<${Picture} path=${given.file} label=${rest.filter((child) => typeof child === 'string').join('')} />` : html`<span class="picture" title=${given.title}>▧ ${children.length ? children : given.title}</span>`;
    // The title of the page is the view's: headings of files begin one lower.
    case 'h1': case 'h2': case 'h3': case 'h4': case 'h5': case 'h6': {
      const level = Math.min(6, Number(name[1]) + 1);
      return h(`h${level}`, { key: nth, id: given.anchor ? `a-${given.anchor}` : undefined, class: `m${name[1]}` }, children);
    }
    default: return h(name, { key: nth }, ...children);
  }
}

/** A picture of the project, fetched with the token. */
export function Picture({ path, at, label }) {
  const [source, setSource] = useState(null);
  useEffect(() => {
    let gone = false;
    let made = null;
    getPicture(path, at).then((blob) => { if (!gone) { made = URL.createObjectURL(blob); setSource(made); } }).catch(() => {});
    return () => { gone = true; if (made) URL.revokeObjectURL(made); };
  }, [path, at]);
  return source ? html`<img class="shown" src=${source} alt=${label || path} />` : html`<span class="picture" title=${path}>▧ ${label || path}</span>`;
}

function link(given, children) {
  if (typeof given.href === 'string') {
    if (!isPlain(given.href)) return html`<span>${children}</span>`;
    return html`<a href=${given.href} target="_blank" rel="noopener noreferrer nofollow">${children}</a>`;
  }
  if (typeof given.file !== 'string') return html`<span>${children}</span>`;
  const name = `${given.broken ? 'broken' : ''} ${given.presses ? 'presses' : ''}`;
  const title = given.broken ? t('broken') : given.file;
  return html`<a class=${name} title=${title} href=${fileAt(given.file, { anchor: given.anchor, line: given.line })}>${children}${given.broken ? ' ⚠' : ''}</a>`;
}

export const Markdown = ({ tree }) => html`<div class="text">${tree.map((node, nth) => grow(node, nth, false))}</div>`;
