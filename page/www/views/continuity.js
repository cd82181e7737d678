// The story as a whole: what contradicts, hangs open or vanishes, and how people stand to each other.

import { html } from '../vendor/preact.js';
import { Card, Empty, Shown, count, place, useCall } from '../ui.js';
import { said } from '../sentences.js';
import { t } from '../words.js';
import { Fields, Level, Place, Waive } from './novel.js';

const sheetOf = (name) => place('story', { tab: 'people', name });

/** One group of findings; it says so if there is none. */
const Group = ({ title, of, children }) => html`<${Card} title=${`${title} (${count(of.length)})`}>
  ${of.length === 0 ? html`<${Empty}>${t('report.none')}</${Empty}>` : children}</${Card}>`;

export function Report() {
  const report = useCall('story report');
  return html`<${Shown} from=${report}>${(data) => html`<div class="stacks"><div>
    <${Group} title=${t('report.conflicts')} of=${data.conflicts}>${data.conflicts.map((one) => html`<div class="conflict" key=${one.id}>
      <div class="sides"><blockquote>${one.claim} <span class="small"><${Place} at=${one.at} /></span></blockquote><blockquote>${one.evidence} <span class="small"><${Place} at=${one.against} /></span> <${Level} of=${one.level} /></blockquote></div>
      <p class="small">${said(one.why)}</p><${Waive} id=${one.id} within=${one.at.replace(/:\d+$/, '')} /></div>`)}</${Group}>
    <${Group} title=${t('story.inside')} of=${data.memory.conflicts}>${data.memory.conflicts.map((one) => html`<div class="conflict" key=${one.id}>
      <div class="sides"><blockquote>${one.text} <span class="small"><${Place} at=${one.at} /></span></blockquote><blockquote>${one.against_text} <span class="small"><${Place} at=${one.against} /></span></blockquote></div>
      <p class="small">${said(one.why)}</p><${Waive} id=${one.id} /></div>`)}</${Group}></div><div>
    <${Group} title=${t('report.overdue')} of=${data.overdue}><ul class="list">${data.overdue.map((one) => html`<li><strong>${one.name}</strong> <span class="small">${t('due')} ${one.due} <${Place} at=${one.at} /></span></li>`)}</ul></${Group}>
    <${Group} title=${t('report.vanished')} of=${data.vanished}><ul class="list">${data.vanished.map((one) => html`<li><a href=${sheetOf(one.name)}>${one.name}</a> <span class="small">${t('report.last', one.last_chapter)} ${one.last && html`<${Place} at=${one.last} />`}</span></li>`)}</ul></${Group}>
    <${Group} title=${t('report.source')} of=${data.without_source}><ul class="list">${data.without_source.map((one) => html`<li class="small"><${Place} at=${one.at} /> ${said(one.what)}</li>`)}</ul></${Group}>
  </div></div>`}</${Shown}>`;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Everyone on an ellipse, and a line for each relation. The list below has the same in words. */
function Drawing({ relations }) {
  const WIDE = Math.max(280, Math.min(640, document.documentElement.clientWidth - 40));
  const people = [...new Set(relations.flatMap((one) => [one.from, one.to]))];
  const HIGH = WIDE < 640 ? Math.max(400, 34 * people.length) : 400;
  // One line for all that one has with another.
  const pairs = new Map();
  for (const { from, to, label, since } of relations) pairs.set(`${from}\n${to}`, [from, to, [...(pairs.get(`${from}\n${to}`)?.[2] ?? []), since ? `${label} (${t('from', since)})` : label]]);
  const spot = (name) => {
    const angle = (2 * Math.PI * people.indexOf(name)) / people.length - Math.PI / 2;
    return [WIDE / 2 + (WIDE / 2 - 70) * Math.cos(angle), HIGH / 2 + (HIGH / 2 - 30) * Math.sin(angle)];
  };
  return html`<div class="wide" tabIndex="0" role="group" aria-label=${t('relations.drawn', people.length, relations.length)}><svg class="provenance relations" width=${WIDE} height=${HIGH} viewBox=${`0 0 ${WIDE} ${HIGH}`}><defs><marker id="towards" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" /></marker></defs>
    ${[...pairs.values()].map(([from, to, labels]) => { const [[ax, ay], [bx, by], said] = [spot(from), spot(to), labels.join(' / ')]; return html`<g><path marker-mid="url(#towards)" d=${`M${ax} ${ay}L${ax + (bx - ax) * 0.62} ${ay + (by - ay) * 0.62}L${bx} ${by}`}><title>${from} → ${to}: ${said}</title></path>
      <text class="folder" text-anchor="middle" x=${ax + (bx - ax) * 0.38} y=${ay + (by - ay) * 0.38 - 4}>${short(said, WIDE < 640 ? 22 : 40)}</text></g>`; })}
    ${people.map((name) => { const [x, y] = spot(name); return html`<a href=${sheetOf(name)}><rect x=${x - 66} y=${y - 14} width="132" height="28" rx="14" /><text text-anchor="middle" x=${x} y=${y + 5}>${short(name, 16)}</text></a>`; })}</svg></div>`;
}

const MOST_DRAWN = 40;

export function Relations({ query }) {
  const found = useCall('story relations', { at: query.at || undefined });
  return html`<${Fields} query=${query} fields=${['at']} /><${Shown} from=${found}>${({ relations }) => (relations.length === 0 ? html`<${Empty}>${t('relations.none')}</${Empty}>`
    : html`${relations.length <= MOST_DRAWN && html`<${Drawing} relations=${relations} />`}
      <ul class="list">${relations.map((one) => html`<li><a href=${sheetOf(one.from)}>${one.from}</a> → <a href=${sheetOf(one.to)}>${one.to}</a> ${one.label}
        ${(one.since || one.until) && html` <span class="tag">${[one.since && t('from', one.since), one.until && t('until', one.until)].filter(Boolean).join(t('comma'))}</span>`} <span class="small"><${Place} at=${one.at} /></span></li>`)}</ul>`)}</${Shown}>`;
}
