// Versions of a file: the slider through them, what changed between two, and the way back.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Difference, Dialog, Empty, Fault, Shown, When, count, go, useAct, useData, useGet } from '../ui.js';
import { useRoving } from '../keys.js';
import { reason, who } from '../sentences.js';
import { t } from '../words.js';

const differenceOf = async (path, from, to) => {
  try {
    return { text: (await call('diff', { path, from, to })).data.diff };
  } catch (error) {
    if (error.status === 404 && from !== '~0') return { first: true };
    throw error;
  }
};

/** What a restore would change, and the question whether to. */
export function RestoreDialog({ path, at, onClose }) {
  const { busy, error, act } = useAct();
  const difference = useData(() => differenceOf(path, '~0', at), [path, at], { live: false });
  const restore = async () => { if (await act(() => call('restore', { path, at }))) onClose(true); };
  return html`<${Dialog} title=${t('restore.sure', path)} onClose=${() => onClose(false)}>
    <p>${t('restore.what')}</p><${Shown} from=${difference}>${({ text }) => html`<${Difference} text=${text} />`}</${Shown}>
    <${Fault} error=${error} />
    <div class="buttons"><button type="button" class="main" disabled=${busy || !difference.data?.text} onClick=${restore}>${t('restore.do')}</button>
      <button type="button" onClick=${() => onClose(false)}>${t('cancel')}</button></div></${Dialog}>`;
}

/** What changed from one version to another; without a first one, from the given to the newest. */
export function Compare({ path, from, at, onClose }) {
  const [older, newer] = from ? [from, at] : [at, '~0'];
  const difference = useData(() => differenceOf(path, older, newer), [path, older, newer], { live: false });
  return html`<${Dialog} title=${path} onClose=${onClose}>
    <${Shown} from=${difference}>${({ text, first }) => (first ? html`<${Empty}>${t('version.first')}</${Empty}>` : html`<${Difference} text=${text} />`)}</${Shown}>
    <div class="buttons"><button type="button" onClick=${onClose}>${t('close')}</button></div></${Dialog}>`;
}

/** Lines added and removed, where they could be counted. */
export const Counts = ({ of }) => (of ? html`<span class="number counts-of"><span class="good">+${count(of[0])}</span> <span class="bad">−${count(of[1])}</span></span>` : null);

/** Every version with what it changed, the newest first. */
function Versions({ path, choose, chosen }) {
  const [from, setFrom] = useState(0);
  const list = useRoving('li');
  const found = useGet('changes', { path, from });
  return html`<${Shown} from=${found}>${({ versions, all }) => html`<ol class="plainlist versions" ref=${list}>${versions.map((event, nth) => html`<li key=${event.seq} class="row wrap"><button type="button" class="plain" aria-current=${event.seq === chosen ? 'true' : undefined} onClick=${() => choose(from + nth, event.seq)}>@${event.seq}</button>
      <${Counts} of=${event.lines} /><span>${who(event.who)}</span> <span class="small muted"><${When} at=${event.at} /></span>${event.why && html` <span class="small">${reason(event.why)}</span>`}</li>`)}</ol>
    ${all > versions.length && html`<div class="buttons small"><button type="button" disabled=${from === 0} onClick=${() => setFrom(0)}>${t('versions.newest')}</button><button type="button" disabled=${from + versions.length >= all} onClick=${() => setFrom(from + versions.length)}>${t('journal.more')}</button></div>`}`}</${Shown}>`;
}

export function History({ query, file }) {
  const [asking, setAsking] = useState(null);
  const [listed, setListed] = useState(false);
  const events = file.events;
  if (events.length === 0) return html`<p class="small muted">${t('no.history')}</p>`;
  const chosen = query.at ? events.findIndex((event) => event.version === query.at || `@${event.seq}` === query.at) : 0;
  const nth = chosen < 0 ? 0 : chosen;
  const event = events[nth];
  // A version from the list may be older than those on the slider.
  const choose = (index, seq = events[index]?.seq) => go('memory', { ...query, at: index === 0 ? undefined : `@${seq}`, anchor: undefined, line: undefined }, { replace: true });
  return html`<div class="history">
    <div class="row wrap"><strong>${t('history')}</strong>
      ${events.length > 1 && html`<input type="range" min="0" max=${events.length - 1} step="1" value=${events.length - 1 - nth} aria-label=${t('history')}
        aria-valuetext=${`${t('version.nth', file.versions - nth, file.versions)}, ${event.who}`} onInput=${(e) => choose(events.length - 1 - Number(e.target.value))} />`}
      <span class="number">${t('version.nth', count(file.versions - nth), count(file.versions))}</span>
      ${events.length > 1 && html`<span class="buttons small"><button type="button" aria-expanded=${listed} onClick=${() => setListed(!listed)}>${t('versions.list')}</button></span>`}</div>
    ${listed && html`<${Versions} path=${file.path} choose=${choose} chosen=${event.seq} />`}
    <p class="small"><a href=${`#/journal?seq=${event.seq}`}>@${event.seq}</a> · ${who(event.who)} · <${When} at=${event.at} />${event.why && html` · ${reason(event.why)}`}</p>
    ${nth > 0 && html`<div class="row wrap notice"><span>${event.op === 'remove' ? t('version.removed') : t('version.older')}</span>
      <button type="button" onClick=${() => setAsking('compare')}>${t('compare')}</button>
      ${event.op !== 'remove' && file.restorable && html`<button type="button" onClick=${() => setAsking('restore')}>${t('restore')}</button>`}
      <button type="button" class="plain" onClick=${() => choose(0)}>${t('version.now')}</button></div>
      ${!file.restorable && html`<p class="small muted">${t('restore.never', t(`class.${file.class}`))}</p>`}`}
    ${asking === 'compare' && html`<${Compare} path=${file.path} at=${`@${event.seq}`} onClose=${() => setAsking(null)} />`}
    ${asking === 'restore' && html`<${RestoreDialog} path=${file.path} at=${`@${event.seq}`} onClose=${(done) => { setAsking(null); if (done) choose(0); }} />`}
  </div>`;
}
