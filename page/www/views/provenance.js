// Provenance: what was read to write a version of a file, and what was made from it since.

import { html, useLayoutEffect, useRef } from '../vendor/preact.js';
import { Empty, FileLink, Shown, When, count, fileAt, place, useGet } from '../ui.js';
import { jobAt, named } from './decide.js';
import { reason, who } from '../sentences.js';
import { t } from '../words.js';

const BOX = { wide: 190, high: 40, between: 70, below: 12, edge: 8 };
const short = (path) => { const name = path.split('/').pop(); return name.length > 24 ? `${name.slice(0, 22)}…` : name; };
const folder = (path) => { const parts = path.split('/'); parts.pop(); const text = parts.join('/'); return text.length > 28 ? `…${text.slice(-26)}` : text; };

/** The column of each text: left of all that was made from it, with the chosen one where the server put it. */
function columns(nodes, edges) {
  const level = nodes.map((node) => node.level);
  let moved = true;
  // A text that came back to an older version may close a circle, so this ends after as many turns as there are texts.
  for (let turn = 0; moved && turn < nodes.length; turn += 1) {
    moved = false;
    for (const [from, to] of edges) {
      if (level[from] < level[to]) continue;
      if (nodes[from].level < 0) level[from] = level[to] - 1; else level[to] = level[from] + 1;
      moved = true;
    }
  }
  return nodes.map((node, at) => ({ ...node, level: level[at] }));
}

/** Where each text stands: in the order of the paths of its column. */
function arrange(plain, edges) {
  const nodes = columns(plain, edges);
  const levels = [...new Set(nodes.map((node) => node.level))].sort((a, b) => a - b);
  const shelves = levels.map((level) => nodes.map((node, at) => ({ ...node, at })).filter((node) => node.level === level).sort((a, b) => a.path.localeCompare(b.path)));
  const most = Math.max(...shelves.map((shelf) => shelf.length));
  const step = BOX.high + BOX.below;
  const spots = [];
  shelves.forEach((shelf, nth) => shelf.forEach((node, row) => {
    spots[node.at] = { x: BOX.edge + nth * (BOX.wide + BOX.between), y: BOX.edge + (row + (most - shelf.length) / 2) * step };
  }));
  return { spots, wide: shelves.length * (BOX.wide + BOX.between) - BOX.between + 2 * BOX.edge, high: most * step + 2 * BOX.edge };
}

/** The picture says nothing that the lists do not say, so it is left out for who cannot see it. */
function Picture({ data }) {
  const { spots, wide, high } = arrange(data.nodes, data.edges);
  const middle = BOX.high / 2;
  const box = useRef(null);
  // The text itself is in sight, however many stand left of it.
  useLayoutEffect(() => { box.current.scrollLeft = spots[0].x + BOX.wide / 2 - box.current.clientWidth / 2; }, [spots[0].x]);
  return html`<div class="wide" tabIndex="0" role="group" aria-label=${t('provenance')} ref=${box}><svg class="provenance" width=${wide} height=${high} viewBox=${`0 0 ${wide} ${high}`} aria-hidden="true">
    ${data.edges.map(([from, to, attempt]) => {
      const [a, b] = [spots[from], spots[to]];
      const [x1, y1, x2, y2] = [a.x + BOX.wide, a.y + middle, b.x, b.y + middle];
      return html`<path d=${`M${x1} ${y1}C${x1 + 35} ${y1} ${x2 - 35} ${y2} ${x2} ${y2}`}><title>${named(data.attempts[attempt])}</title></path>`;
    })}
    ${data.nodes.map((node, at) => html`<a href=${fileAt(node.path, { at: node.old || node.seq === null ? node.version : undefined, tab: 'provenance' })} tabindex="-1" class="${at === 0 ? 'own' : ''} ${node.old ? 'old' : ''}">
      <title>${`${node.path} ${node.version}${node.old ? `: ${t('provenance.old')}` : ''}`}</title>
      <rect x=${spots[at].x} y=${spots[at].y} width=${BOX.wide} height=${BOX.high} rx="7" />
      <text x=${spots[at].x + 10} y=${spots[at].y + (folder(node.path) ? 17 : 25)}>${short(node.path)}</text><text class="folder" x=${spots[at].x + 10} y=${spots[at].y + 32}>${folder(node.path)}</text></a>`)}
  </svg></div>`;
}

function Attempt({ one, files }) {
  return html`<div class="row wrap"><a href=${jobAt(one)}><strong>${named(one)}</strong></a> <span class="tag">${t(`ruling.${one.ruling}`)}</span>${one.agent && html`<span>${one.agent}</span>`}
      <span class="small muted"><a href=${place('journal', { seq: one.seq })}>@${one.seq}</a> <${When} at=${one.at} /></span></div>
    ${one.usage && html`<p class="small muted">${count(one.usage.input)} + ${count(one.usage.output)} ${t('tokens')}</p>`}
    ${files && one.files.length > 0 && html`<ul class="plainlist">${one.files.map((path) => html`<li>→ <${FileLink} path=${path} /></li>`)}</ul>`}`;
}

export function Provenance({ path, at }) {
  const found = useGet('provenance', { path, at });
  return html`<${Shown} from=${found}>${(data) => {
    if (data.version === null) return html`<${Empty}>${t('file.never')}</${Empty}>`;
    const made = data.attempts[data.made_by];
    const old = new Set(data.nodes.filter((node) => node.old).map((node) => `${node.path}@${node.version}`));
    const reads = data.reads ?? [];
    return html`${data.nodes.length > 1 && html`<${Picture} data=${data} />`}
      ${data.cut && html`<p class="small muted">${t('provenance.cut', data.nodes.length)}</p>`}
      <h3>${t('provenance.by')}</h3>
      ${made ? html`<${Attempt} one=${made} />` : data.event ? html`<p>${who(data.event.who)} · <a href=${place('journal', { seq: data.event.seq })}>@${data.event.seq}</a> <${When} at=${data.event.at} />${data.event.why && html` · ${reason(data.event.why)}`}</p>` : null}
      <h3>${t('provenance.read')}</h3>
      ${!made && html`<${Empty}>${t('provenance.unknown')}</${Empty}>`}
      ${made && reads.length === 0 && html`<${Empty}>${t('provenance.none')}</${Empty}>`}
      <ul class="plainlist">${reads.map((one) => html`<li><${FileLink} path=${one.path} anchor=${one.section} at=${old.has(`${one.path}@${one.version}`) ? one.version : undefined} /> ${old.has(`${one.path}@${one.version}`) && html`<span class="tag s-stale">${t('provenance.old')}</span>`}
        <a class="arrow" href=${fileAt(one.path, { at: one.version, tab: 'provenance' })} title=${t('provenance')} aria-label=${`${t('provenance')}: ${one.path}`}>↖</a></li>`)}</ul>
      <h3>${t('provenance.made')}</h3>
      ${data.uses.length === 0 ? html`<${Empty}>${t('provenance.unused')}</${Empty}>` : html`<ul class="list">${data.uses.map((nth) => html`<li><${Attempt} one=${data.attempts[nth]} files=${true} /></li>`)}</ul>`}`;
  }}</${Shown}>`;
}
