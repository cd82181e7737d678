// Search in every view: paths, exact text, and what recall finds.

import { html, useEffect, useMemo, useRef, useState } from '../vendor/preact.js';
import { call, get } from '../api.js';
import { Dialog, Fault, fileAt, useData } from '../ui.js';
import { t } from '../words.js';

const PATHS = 8;
const PASSAGES = 6;

/** Milliseconds without a key before paths are looked up, and before files are read. */
const SOON = 60;
const LATER = 400;

/** One kind of finds: asked by itself, so that a slow one keeps no other waiting. A question that nobody asks any more is given up: a browser has few connections. */
function Kind({ title, wanted, ask, row, none, onFound }) {
  const given = useMemo(() => new AbortController(), [wanted]);
  useEffect(() => () => given.abort(), [given]);
  const answer = async () => ({ wanted, ...(await ask(wanted, { signal: given.signal })) });
  const found = useData(() => (wanted ? answer() : Promise.resolve(null)), [wanted], { live: false });
  // Finds of the text before stay in sight until these are there.
  const isCurrent = found.error !== null || found.data?.wanted === wanted;
  useEffect(onFound, [wanted, found.data, found.error]);
  if (!wanted) return null;
  const { hits = [], note } = found.data ?? {};
  return html`<section aria-label=${title} aria-busy=${!isCurrent}><h3>${title}</h3>
    <${Fault} error=${found.error} />
    ${found.data && hits.length === 0 && html`<p class="small muted">${none}</p>`}
    <ul class="plainlist finds">${hits.map(row)}</ul>${note && html`<p class="small muted">${note}</p>`}</section>`;
}

/** The text with what was looked for marked. */
function Marked({ text, wanted }) {
  const at = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1;
  if (at < 0) return text;
  return html`${text.slice(0, at)}<mark>${text.slice(at, at + wanted.length)}</mark>${text.slice(at + wanted.length)}`;
}

const paths = async (q, options) => {
  const { files, total } = await get('files', { q, limit: PATHS }, options);
  return { hits: files, note: total > files.length ? t('and.more', total - files.length) : null };
};
const lines = async (q, options) => {
  const { hits, searched, files } = await get('search', { q }, options);
  return { hits, note: searched < files ? t('search.part', searched, files) : null };
};
const passages = async (question, options) => {
  const { hits, weak } = (await call('recall', { question, most: PASSAGES }, undefined, options)).data;
  return { hits, note: weak && hits.length > 0 ? t('search.weak') : null };
};

/** Views and actions by name: as one types, they come before what is found in files. */
function Commands({ wanted, commands }) {
  const words = wanted.toLowerCase();
  const hits = commands.filter(([name]) => !words || name.toLowerCase().includes(words));
  if (hits.length === 0) return null;
  return html`<section aria-label=${t('search.commands')}><h3>${t('search.commands')}</h3><ul class="plainlist finds">${hits.map(([name, href, act]) => html`<li key=${name}><a href=${href ?? '#'} onClick=${(event) => { if (act) { event.preventDefault(); act(); } }}><${Marked} text=${name} wanted=${wanted} /></a></li>`)}</ul></section>`;
}

export function Search({ onClose, commands }) {
  const [text, setText] = useState('');
  const [wanted, setWanted] = useState('');
  const [read, setRead] = useState('');
  const box = useRef(null);
  useEffect(() => {
    const timers = [setTimeout(() => setWanted(text.trim()), SOON), setTimeout(() => setRead(text.trim()), LATER)];
    return () => timers.forEach(clearTimeout);
  }, [text]);
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [box.current.querySelector('input'), ...box.current.querySelectorAll('.finds a')];
    const next = stops[stops.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  // Enter means the first find for what stands in the box now, which may still be looked for.
  const opens = useRef(false);
  const openFirst = () => {
    for (const kind of box.current.querySelectorAll('section')) {
      if (kind.ariaBusy === 'true') return;
      const find = kind.querySelector('.finds a');
      if (find) { opens.current = false; find.click(); return; }
    }
    opens.current = false;
  };
  const open = (event) => {
    event.preventDefault();
    const now = text.trim();
    opens.current = true;
    if (now === wanted && now === read) openFirst();
    setWanted(now);
    setRead(now);
  };
  const found = () => {
    if (!box.current?.isConnected) return;
    // A find that was replaced takes the focus with it.
    if (!box.current.contains(document.activeElement)) box.current.querySelector('input').focus();
    if (opens.current) openFirst();
  };
  const chosen = (event) => { if (event.target.closest('.finds a')) onClose(); };
  return html`<${Dialog} title=${t('search')} onClose=${onClose}><div class="search" ref=${box} onKeyDown=${move} onClick=${chosen}>
    <form onSubmit=${open}><label><span class="hidden">${t('search.what')}</span><input type="search" autofocus placeholder=${t('search.what')} value=${text} onInput=${(e) => { opens.current = false; setText(e.target.value); }} /></label></form>
    <${Commands} wanted=${wanted} commands=${commands} />
    <${Kind} title=${t('search.paths')} wanted=${wanted} ask=${paths} none=${t('search.none')} onFound=${found} row=${(one) => html`<li key=${one.path}><a class="path" href=${fileAt(one.path)}><${Marked} text=${one.path} wanted=${wanted} /></a></li>`} />
    <${Kind} title=${t('search.text')} wanted=${read} ask=${lines} none=${t('search.none')} onFound=${found} row=${(one) => html`<li key=${`${one.path}:${one.line}`}><a class="find" href=${fileAt(one.path, { line: one.line, tab: 'source' })}><span class="path">${one.path}:${one.line}</span> <span><${Marked} text=${one.text} wanted=${read} /></span></a></li>`} />
    <${Kind} title=${t('search.meaning')} wanted=${read} ask=${passages} none=${t('search.none')} onFound=${found} row=${(one) => html`<li key=${`${one.path}:${one.line}`}><a class="find" href=${fileAt(one.path, { line: one.line, tab: 'source' })}><span class="path">${one.path}:${one.line}</span>
      <span class="small muted">${one.heading_path.join(' › ')}</span> <span class="clip">${one.snippet}</span></a></li>`} />
    ${!wanted && html`<p class="hint">${t('search.how')}</p>`}
    <div class="buttons"><button type="button" onClick=${onClose}>${t('close')}</button></div></div></${Dialog}>`;
}
