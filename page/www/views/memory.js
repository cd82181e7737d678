// Memory: files by class, one file at any version, who wrote which line, who cites it.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { get } from '../api.js';
import { ClassTag, Empty, FileLink, Hint, Shown, Tabs, count, fileAt, go, place, useGet, useNews } from '../ui.js';
import { Markdown, Picture } from '../markdown.js';
import { Decision } from './decide.js';
import { EditDialog } from './edit.js';
import { Flagged } from './flagged.js';
import { Provenance } from './provenance.js';
import { History } from './versions.js';
import { own, who } from '../sentences.js';
import { t } from '../words.js';

const ROW = 40;
const PAGE = 200;
/** The list is one tab stop: the arrow keys go through it, however long it is. */
function useWindowKeys(box, total, start) {
  const [active, setActive] = useState(null);
  const wanted = useRef(false);
  const at = Math.max(0, Math.min(active ?? start, total - 1));
  const key = (event) => {
    const rows = Math.max(1, Math.floor((box.current?.clientHeight ?? ROW) / ROW) - 1);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + rows, PageUp: at - rows, Home: 0, End: total - 1 }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(total - 1, next));
    const { scrollTop, clientHeight } = box.current;
    if (to * ROW < scrollTop) box.current.scrollTop = to * ROW;
    else if ((to + 1) * ROW > scrollTop + clientHeight) box.current.scrollTop = (to + 1) * ROW - clientHeight;
    wanted.current = true;
    setActive(to);
  };
  // The row may come only when the list has been scrolled and its page fetched.
  useLayoutEffect(() => {
    if (!wanted.current) return;
    const row = box.current?.querySelector(`[data-nth="${at}"]`);
    if (!row) return;
    wanted.current = false;
    row.focus({ preventScroll: true });
  });
  return { at, key, setActive };
}

const CLASSES = ['sealed', 'append', 'record', 'overwrite', 'state', 'derived', 'free', 'flagged'];

/** The folder that is listed, with the way back to those around it. */
function Crumbs({ query }) {
  const parts = (query.under ?? '').split('/').filter(Boolean);
  const at = (number) => place('memory', { ...query, under: number === 0 ? undefined : `${parts.slice(0, number).join('/')}/` });
  return html`<p class="crumbs small path"><a href=${at(0)}>${t('files.top')}</a>${parts.map((part, nth) => html` / ${nth + 1 === parts.length ? html`<strong>${part}</strong>` : html`<a href=${at(nth + 1)}>${part}</a>`}`)}</p>`;
}

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
  const { at, key: move, setActive } = useWindowKeys(box, total, Math.max(0, first.data?.files.findIndex((file) => file.path === query.path) ?? 0));
  useEffect(() => { setActive(null); }, [key]);
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
      ${query.order === 'folders' && html`<${Crumbs} query=${query} />`}
      ${total === 0 && html`<${Empty}>${t('files.none')}</${Empty}>`}
      <div class="window" style=${{ maxHeight: `${total * ROW + 2}px`, minHeight: `min(16rem, ${total * ROW + 2}px)` }} ref=${box} onScroll=${(event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${move} role="region" aria-label=${t('files.count', count(total))}>
        <div style=${{ height: `${total * ROW}px` }}>${rows.map(([nth, file]) => html`
          ${file?.folder ? html`<a key=${nth} class="file folder" data-nth=${nth} tabIndex=${nth === at ? 0 : -1} onFocus=${() => setActive(nth)} style=${{ top: `${nth * ROW}px` }} href=${place('memory', { ...query, under: file.folder })}>
            <span aria-hidden="true">▸</span><span class="path"><bdi>${file.folder.slice((query.under ?? '').length)}</bdi></span><span class="number muted small">${t('files.count', count(file.files))}</span></a>` : html`<a key=${nth} class="file" data-nth=${nth} tabIndex=${nth === at ? 0 : -1} onFocus=${() => setActive(nth)} style=${{ top: `${nth * ROW}px` }} href=${file ? fileAt(file.path, { class: query.class, q: query.q, order: query.order, under: query.under }) : undefined}
            aria-current=${file?.path === query.path ? 'true' : undefined}>
            ${file && html`<span class="path"><bdi>${query.order === 'folders' ? file.path.slice((query.under ?? '').length) : file.path}</bdi></span>${file.flag && html`<span class="tag s-failed">!</span>`}<${ClassTag} of=${file.class} />`}</a>`}`)}</div>
      </div>`;
  }}</${Shown}>`;
}

function Lines({ path, at, blame, line, origin }) {
  const [shown, setShown] = useState(400);
  const from = Math.max(0, Math.floor(((line ?? 1) - 1) / 400) * 400);
  const lines = useGet('lines', { path, at, from, count: Math.min(shown, 1000), blame: blame || undefined });
  const row = useRef(null);
  const shownAt = useRef(null);
  // Once for each line that was asked for: news must not pull the page back to it.
  useEffect(() => {
    if (!row.current || shownAt.current === line) return;
    shownAt.current = line;
    row.current.scrollIntoView({ block: 'center' });
  }, [line, lines.data]);
  return html`<${Shown} from=${lines}>${(data) => {
    // One cell for the lines of one commit, so that a long name does not stretch its first line; a marked line has its own.
    const marked = (one) => one?.line === Number(line);
    const opens = (nth) => nth === 0 || data.lines[nth].seq !== data.lines[nth - 1].seq || marked(data.lines[nth]) || marked(data.lines[nth - 1]);
    const span = (nth) => { let end = nth + 1; while (end < data.lines.length && !opens(end)) end += 1; return end - nth; };
    return html`<table class="lines"><tbody>${data.lines.map((one, nth) => {
      const fresh = one.seq !== data.lines[nth - 1]?.seq;
      return html`<tr ref=${marked(one) ? row : undefined} class="${fresh && blame ? 'fresh' : ''} ${marked(one) ? 'marked' : ''}">
        ${blame && opens(nth) && html`<td class="by" rowSpan=${span(nth)}>${(fresh || marked(one)) && html`<a href=${`#/journal?seq=${one.seq}`}>@${one.seq}</a> ${origin && html`<a class="arrow" href=${fileAt(path, { at: `@${one.seq}`, tab: 'provenance' })} title=${t('provenance.read')} aria-label=${marked(one) ? undefined : `${t('provenance.read')}: @${one.seq}`}>↖${marked(one) && ` ${t('provenance.had')}`}</a> `}${who(one.who)}`}</td>`}
        <td class="nr">${one.line}</td><td class="code">${one.tokens ? one.tokens.map((token) => (typeof token === 'string' ? token : html`<span class="t-${token[0]}">${token[1]}</span>`)) : one.text}</td></tr>`;
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

/** What waits for a person and is about this file. */
function Decisions({ path }) {
  const found = useGet('decisions', { path });
  const jobs = found.data?.jobs ?? [];
  if (jobs.length === 0) return null;
  return html`<section class="card attention"><h3>${t('now.yours')}</h3>${jobs.map((job) => html`<${Decision} key=${`${job.step}/${job.unit}`} job=${job} />`)}</section>`;
}

function File({ query, project }) {
  const file = useGet('file', { path: query.path, at: query.at });
  const data = file.data;
  const [editing, setEditing] = useState(false);
  useEffect(() => {
    if (!data || !query.anchor) return;
    document.getElementById(`a-${query.anchor}`)?.scrollIntoView({ block: 'start' });
  }, [data?.version, query.anchor]);
  const close = () => go('memory', { class: query.class, q: query.q, order: query.order, under: query.under });
  return html`<article class="reader" aria-busy=${file.loading}>
    <div class="row spread"><h2 class="path"><bdi>${query.path}</bdi></h2><button type="button" class="plain" onClick=${close}>${t('close')} ✕</button></div>
    <${Shown} from=${file}>${(data) => {
      const asTree = data.tree !== null || data.is_picture;
      const tabs = [...(asTree ? [['read', t('read')]] : []), ['source', t('source')], ['blame', t('blame')], ['links', t('links')], ...(project.has.flow ? [['provenance', t('provenance')]] : [])];
      const tab = query.tab ?? (query.line ? 'source' : asTree ? 'read' : 'source');
      return html`
        <p class="row wrap"><${ClassTag} of=${data.class} /><span class="small">${t(`about.${data.class}`)}</span>
          ${data.edit && !data.flag && !query.at && html`<span class="buttons small"><button type="button" onClick=${() => setEditing(true)}>${t(data.edit === 'write' ? 'edit' : `edit.do.${data.edit}`)} …</button></span>`}</p>
        ${editing && html`<${EditDialog} path=${data.path} operation=${data.edit} onClose=${() => setEditing(false)} />`}
        ${data.about && own(data.about) && html`<p class="muted">${own(data.about)}</p>`}
        ${data.flag && html`<${Flagged} path=${data.path} open=${true} />`}
        ${data.flag && data.version !== null && !query.at && html`<p class="notice">${t('flag.recorded')}</p>`}
        ${project.has.flow && html`<${Decisions} path=${data.path} />`}
        <${History} query=${query} file=${data} />
        <${Tabs} label=${data.path} chosen=${tab} onChoose=${(name) => go('memory', { ...query, tab: name, line: name === 'source' || name === 'blame' ? query.line : undefined })} of=${tabs} />
        <div role="tabpanel" class="body">${{
          read: () => (data.is_picture ? html`<${Picture} path=${data.path} at=${query.at} />` : asTree ? html`<${Markdown} tree=${data.tree} />` : null),
          source: () => (data.version === null ? html`<${Empty}>${t('file.never')}</${Empty}>` : data.is_text ? html`<${Lines} path=${data.path} at=${query.at} line=${query.line} />` : html`<${Empty}>${t('binary')} ${t('bytes', count(data.bytes))}</${Empty}>`),
          blame: () => (data.is_text ? html`<${Lines} path=${data.path} at=${query.at} blame=${true} line=${query.line} origin=${project.has.flow} />` : html`<${Empty}>${data.version === null ? t('file.never') : t('binary')}</${Empty}>`),
          links: () => html`<${Links} path=${data.path} />`,
          provenance: () => html`<${Provenance} path=${data.path} at=${query.at} />`,
        }[tab]?.()}</div>`;
    }}</${Shown}></article>`;
}

export function Memory({ query, project }) {
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
          <option value="">${t('files.path')}</option><option value="folders">${t('files.folders')}</option><option value="newest">${t('files.newest')}</option></select></label></div>
      <${Files} query=${query} wants=${{ class: query.class, q: query.q, order: query.order, under: query.order === 'folders' ? query.under : undefined }} />
    </div>
    ${query.path ? html`<${File} key=${query.path} query=${query} project=${project} />` : html`<div class="reader"><${Empty}>${t('files.pick')}</${Empty}></div>`}
  </div>`;
}
