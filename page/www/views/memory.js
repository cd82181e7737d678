// Memory: files by class, one file at any version, who wrote which line, who cites it.

import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { call, get } from '../api.js';
import { ClassTag, Difference, Dialog, Empty, Fault, FileLink, Hint, Loading, Shown, Tabs, When, count, fileAt, go, useAct, useData, useGet, useNews } from '../ui.js';
import { Markdown } from '../markdown.js';
import { t } from '../words.js';

const ROW = 40;
const PAGE = 200;
const CLASSES = ['sealed', 'append', 'record', 'overwrite', 'state', 'derived', 'free', 'flagged'];

/** A list of any length: only the rows in sight are there, and only their pages are fetched. */
function Files({ query, wants }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [pages, setPages] = useState(new Map());
  const first = useGet('files', { ...wants, limit: PAGE });
  const key = JSON.stringify(wants);
  useEffect(() => { setPages(new Map()); box.current?.scrollTo(0, 0); }, [key]);
  useNews(() => setPages(new Map()));
  useEffect(() => { if (box.current) setHeight(box.current.clientHeight); });
  const total = first.data?.total ?? 0;
  const from = Math.max(0, Math.floor(top / ROW) - 5);
  const to = Math.min(total, Math.ceil((top + height) / ROW) + 5);
  const needed = useMemo(() => {
    const found = [];
    for (let page = Math.floor(from / PAGE); page * PAGE < to; page += 1) if (page > 0) found.push(page);
    return found;
  }, [from, to]);
  useEffect(() => {
    let gone = false;
    for (const page of needed.filter((one) => !pages.has(one))) {
      get('files', { ...wants, offset: page * PAGE, limit: PAGE })
        .then((data) => { if (!gone) setPages((old) => new Map(old).set(page, data.files)); }).catch(() => {});
    }
    return () => { gone = true; };
  }, [needed.join(), key, pages]);
  return html`<${Shown} from=${first}>${(data) => {
    const row = (nth) => (nth < PAGE ? data.files[nth] : pages.get(Math.floor(nth / PAGE))?.[nth % PAGE]);
    const rows = [];
    for (let nth = from; nth < to; nth += 1) rows.push([nth, row(nth)]);
    const all = Object.values(data.classes).reduce((sum, n) => sum + n, 0);
    const chip = (name, number) => html`<button type="button" class="chip" aria-pressed=${(query.class ?? '') === name} title=${name ? t(`about.${name}`) : ''}
      onClick=${() => go('memory', { ...query, class: name }, { replace: true })}>${t(`class.${name || 'all'}`)} <span class="number">${count(number)}</span></button>`;
    return html`
      <div class="row wrap chips">${chip('', all)}${CLASSES.filter((name) => (name === 'flagged' ? data.flagged : data.classes[name])).map((name) => chip(name, name === 'flagged' ? data.flagged : data.classes[name]))}</div>
      ${total === 0 && html`<${Empty}>${t('files.none')}</${Empty}>`}
      <div class="window" ref=${box} onScroll=${(event) => setTop(event.currentTarget.scrollTop)} tabIndex="0" role="region" aria-label=${t('files.count', count(total))}>
        <div style=${{ height: `${total * ROW}px` }}>${rows.map(([nth, file]) => html`
          <a key=${nth} class="file" style=${{ top: `${nth * ROW}px` }} href=${file ? fileAt(file.path, { class: query.class, q: query.q, order: query.order }) : undefined}
            aria-current=${file?.path === query.path ? 'true' : undefined}>
            ${file && html`<span class="path"><bdi>${file.path}</bdi></span>${file.flag && html`<span class="tag s-failed">!</span>`}<${ClassTag} of=${file.class} />`}</a>`)}</div>
      </div>`;
  }}</${Shown}>`;
}

function Lines({ path, at, blame, line }) {
  const [shown, setShown] = useState(400);
  const from = Math.max(0, Math.floor(((line ?? 1) - 1) / 400) * 400);
  const lines = useGet('lines', { path, at: blame ? undefined : at, from, count: Math.min(shown, 1000), blame: blame || undefined });
  const place = useRef(null);
  useEffect(() => { place.current?.scrollIntoView({ block: 'center' }); }, [lines.data === null]);
  return html`<${Shown} from=${lines}>${(data) => {
    let before = null;
    return html`<table class="lines"><tbody>${data.lines.map((one) => {
      const fresh = one.seq !== before;
      before = one.seq;
      return html`<tr ref=${one.line === Number(line) ? place : undefined} class="${fresh && blame ? 'fresh' : ''} ${one.line === Number(line) ? 'marked' : ''}">
        ${blame && html`<td class="by">${fresh && html`<a href=${`#/journal?seq=${one.seq}`}>@${one.seq}</a> ${one.who}`}</td>`}
        <td class="nr">${one.line}</td><td class="code">${one.text}</td></tr>`;
    })}</tbody></table>
    ${data.from + data.lines.length < data.total && html`<p><button type="button" onClick=${() => (shown < 1000 ? setShown(1000) : go('memory', { path, at, tab: blame ? 'blame' : 'source', line: data.from + data.lines.length + 1 }))}>${t('lines.more', count(data.total - data.from - data.lines.length))}</button></p>`}`;
  }}</${Shown}>`;
}

function Links({ path }) {
  const links = useGet('links', { path });
  return html`<${Shown} from=${links}>${(data) => html`
    <h3>${t('cited.by')}</h3>${data.in.length === 0 ? html`<${Empty}>${t('cited.none')}</${Empty}>` : html`<ul class="list">${data.in.map((one) => html`<li>
      <div class="row wrap"><${FileLink} path=${one.path} line=${one.line} />${one.presses && html`<span class="tag">${t('presses')}</span>`}${one.anchor && html`<span class="muted small">#${one.anchor}</span>`}</div><p class="said">${one.text}</p></li>`)}</ul>`}
    <h3>${t('leads.to')}</h3>${data.out.length === 0 ? html`<${Empty}>${t('leads.none')}</${Empty}>` : html`<ul class="list">${data.out.map((one) => html`<li class="row wrap">
      <${FileLink} path=${one.to} anchor=${one.anchor} />${!one.fine && html`<span class="tag s-failed">${t('broken')}</span>`}${one.near && html`<span class="small">${t('near', one.near)}</span>`}</li>`)}</ul>`}`}</${Shown}>`;
}

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

function History({ query, file }) {
  const [asking, setAsking] = useState(null);
  const events = file.events;
  if (events.length === 0) return html`<p class="small muted">${t('no.history')}</p>`;
  const chosen = query.at ? events.findIndex((event) => event.version === query.at || `@${event.seq}` === query.at) : 0;
  const nth = chosen < 0 ? 0 : chosen;
  const event = events[nth];
  const choose = (index) => go('memory', { ...query, at: index === 0 ? undefined : `@${events[index].seq}`, anchor: undefined, line: undefined }, { replace: true });
  return html`<div class="history">
    <div class="row wrap"><strong>${t('history')}</strong>
      <input type="range" min="0" max=${events.length - 1} step="1" value=${events.length - 1 - nth} aria-label=${t('history')} disabled=${events.length < 2}
        aria-valuetext=${`${t('version.nth', file.versions - nth, file.versions)}, ${event.who}`} onInput=${(e) => choose(events.length - 1 - Number(e.target.value))} />
      <span class="number">${t('version.nth', count(file.versions - nth), count(file.versions))}</span></div>
    <p class="small"><a href=${`#/journal?seq=${event.seq}`}>@${event.seq}</a> · ${event.who} · <${When} at=${event.at} />${event.why && html` · ${event.why}`}</p>
    ${nth > 0 && html`<div class="row wrap notice"><span>${event.op === 'remove' ? t('version.removed') : t('version.older')}</span>
      <button type="button" onClick=${() => setAsking('compare')}>${t('compare')}</button>
      ${event.op !== 'remove' && html`<button type="button" onClick=${() => setAsking('restore')}>${t('restore')}</button>`}
      <button type="button" class="plain" onClick=${() => choose(0)}>${t('version.now')}</button></div>`}
    ${asking === 'compare' && html`<${Compare} path=${file.path} at=${`@${event.seq}`} onClose=${() => setAsking(null)} />`}
    ${asking === 'restore' && html`<${RestoreDialog} path=${file.path} at=${`@${event.seq}`} onClose=${(done) => { setAsking(null); if (done) choose(0); }} />`}
  </div>`;
}

const differenceOf = async (path, from, to) => {
  try {
    return { text: (await call('diff', { path, from, to })).data.diff };
  } catch (error) {
    if (error.status === 404 && from !== '~0') return { first: true };
    throw error;
  }
};

/** What changed from one version to another; without a first one, from the given to the newest. */
export function Compare({ path, from, at, onClose }) {
  const [older, newer] = from ? [from, at] : [at, '~0'];
  const difference = useData(() => differenceOf(path, older, newer), [path, older, newer], { live: false });
  return html`<${Dialog} title=${path} onClose=${onClose}>
    <${Shown} from=${difference}>${({ text, first }) => (first ? html`<${Empty}>${t('version.first')}</${Empty}>` : html`<${Difference} text=${text} />`)}</${Shown}>
    <div class="buttons"><button type="button" onClick=${onClose}>${t('close')}</button></div></${Dialog}>`;
}

function File({ query }) {
  const file = useGet('file', { path: query.path, at: query.at });
  const data = file.data;
  useEffect(() => {
    if (!data || !query.anchor) return;
    document.getElementById(`a-${query.anchor}`)?.scrollIntoView({ block: 'start' });
  }, [data?.version, query.anchor]);
  const close = () => go('memory', { class: query.class, q: query.q, order: query.order });
  return html`<article class="reader">
    <div class="row spread"><h2 class="path"><bdi>${query.path}</bdi></h2><button type="button" class="plain" onClick=${close}>${t('close')} ✕</button></div>
    <${Shown} from=${file}>${(data) => {
      const asTree = data.tree !== null;
      const tabs = [...(asTree ? [['read', t('read')]] : []), ['source', t('source')], ['blame', t('blame')], ['links', t('links')]];
      const tab = query.tab ?? (query.line ? 'source' : asTree ? 'read' : 'source');
      return html`
        <p class="row wrap"><${ClassTag} of=${data.class} /><span class="small">${t(`about.${data.class}`)}</span></p>
        ${data.about && html`<p class="muted">${data.about}</p>`}
        ${data.flag && html`<p class="fault">${data.path} ${data.flag.what}</p>`}
        <${History} query=${query} file=${data} />
        <${Tabs} label=${data.path} chosen=${tab} onChoose=${(name) => go('memory', { ...query, tab: name, line: undefined }, { replace: true })} of=${tabs} />
        <div role="tabpanel" class="body">${{
          read: () => (asTree ? html`<${Markdown} tree=${data.tree} />` : null),
          source: () => (data.is_text ? html`<${Lines} path=${data.path} at=${query.at} line=${query.line} />` : html`<${Empty}>${t('binary')} ${t('bytes', count(data.bytes))}</${Empty}>`),
          blame: () => (data.is_text ? html`<${Lines} path=${data.path} blame=${true} line=${query.line} />` : html`<${Empty}>${t('binary')}</${Empty}>`),
          links: () => html`<${Links} path=${data.path} />`,
        }[tab]?.()}</div>`;
    }}</${Shown}></article>`;
}

export function Memory({ query }) {
  const [text, setText] = useState(query.q ?? '');
  const timer = useRef(null);
  const search = (value) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go('memory', { ...query, q: value }, { replace: true }), 200);
  };
  return html`<${Hint} of="memory" /><div class="shelves ${query.path ? 'open' : ''}">
    <div class="files">
      <div class="row"><label class="grow"><span class="hidden">${t('files.search')}</span><input type="search" placeholder=${t('files.search')} value=${text} onInput=${(e) => search(e.target.value)} /></label>
        <label><span class="hidden">${t('order')}</span><select value=${query.order ?? ''} onChange=${(e) => go('memory', { ...query, order: e.target.value }, { replace: true })}>
          <option value="">${t('files.path')}</option><option value="newest">${t('files.newest')}</option></select></label></div>
      <${Files} query=${query} wants=${{ class: query.class, q: query.q, order: query.order }} />
    </div>
    ${query.path ? html`<${File} key=${query.path} query=${query} />` : html`<div class="reader"><${Empty}>${t('files.pick')}</${Empty}></div>`}
  </div>`;
}
