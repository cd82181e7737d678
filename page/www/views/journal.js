// Journal: every commit, searched, verified, and the way back.

import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { call, get } from '../api.js';
import { Empty, Fault, FileLink, Hint, Loading, When, count, go, useAct, useGet, useNews } from '../ui.js';
import { useRoving } from '../keys.js';
import { Compare, Counts, RestoreDialog } from './versions.js';
import { reason, who } from '../sentences.js';
import { t } from '../words.js';

const KINDS = ['commit', 'adopt', 'amend', 'restore', 'conflict-copy', 'lease', 'note'];
const isFile = (kind) => !['lease', 'note'].includes(kind);

function Verify() {
  const { busy, error, act } = useAct();
  const [found, setFound] = useState(null);
  const look = async () => { const told = await act(() => call('verify')); if (told) setFound(told.data); };
  return html`<div class="verify"><button type="button" disabled=${busy} onClick=${look}>${busy ? t('loading') : t('verify')}</button>
    <span role="status">${found ? (found.problems.length === 0
      ? html`<span class="tag s-done">✓ ${t('verify.ok', count(found.records), count(found.files))}</span>`
      : html`<span class="tag s-failed">✕ ${t('verify.bad', found.problems.length)}</span>`) : html`<span class="small muted">${t('verify.about')}</span>`}</span>
    <${Fault} error=${error} />
    ${found?.problems.length > 0 && html`<ul class="list">${found.problems.slice(0, 50).map((one) => html`<li><strong>${one.place}</strong> ${one.what}<p class="small"><code>${one.remedy}</code></p></li>`)}</ul>`}</div>`;
}

/** Lines that a commit changed in one of its files. */
function Changed({ path, seq }) {
  const found = useGet('changes', { path, seq }, { live: false });
  return html`<${Counts} of=${found.data?.versions[0]?.lines} />`;
}

function Entry({ entry, chosen }) {
  const [asking, setAsking] = useState(null);
  const [open, setOpen] = useState(chosen);
  const place = useRef(null);
  useEffect(() => { if (chosen) place.current?.scrollIntoView({ block: 'center' }); }, [chosen]);
  const shown = open ? entry.paths : entry.paths.slice(0, 3);
  const close = () => setAsking(null);
  return html`<li ref=${place} class="entry ${chosen ? 'marked' : ''}">
    <div class="row wrap"><button type="button" class="plain seq" aria-expanded=${open} onClick=${() => setOpen(!open)}>@${entry.seq}</button><span class="tag">${t(`kind.${entry.kind}`)}</span><strong>${who(entry.who)}</strong><span class="muted small"><${When} at=${entry.at} /></span></div>
    ${entry.why && html`<p class=${open ? '' : 'clip'}>${reason(entry.why)}</p>`}
    <ul class="paths">${shown.map((path) => html`<li>${isFile(entry.kind) ? html`<${FileLink} path=${path} />` : html`<code>${path}</code>`}
      ${open && isFile(entry.kind) && html`<${Changed} path=${path} seq=${entry.seq} /><span class="buttons small"><a class="button" href=${`#/memory?${new URLSearchParams({ path, at: `@${entry.seq}` })}`}>${t('show.version')}</a>
        <button type="button" onClick=${() => setAsking(['change', path])}>${t('show.change')}</button>
        ${entry.restorable.includes(path) && html`<button type="button" onClick=${() => setAsking(['restore', path])}>${t('restore')}</button>`}</span>`}</li>`)}
      ${(entry.paths.length > shown.length || entry.more > 0) && html`<li class="small muted">${t('journal.files', entry.paths.length - shown.length + entry.more)}</li>`}</ul>
    ${asking?.[0] === 'change' && html`<${Compare} path=${asking[1]} from=${`@${entry.seq - 1}`} at=${`@${entry.seq}`} onClose=${close} />`}
    ${asking?.[0] === 'restore' && html`<${RestoreDialog} path=${asking[1]} at=${`@${entry.seq}`} onClose=${close} />`}
  </li>`;
}

export function Journal({ query }) {
  const seq = Number(query.seq) || null;
  const wants = { q: query.q, actor: query.actor, path: query.path, kind: query.kind };
  const [state, setState] = useState({ entries: null, next: null, error: null, busy: false });
  const [given, setGiven] = useState(wants);
  const timer = useRef(null);
  const turn = useRef(0);
  const list = useRoving('li.entry');
  const key = JSON.stringify({ ...wants, seq });
  const load = async (before, kept) => {
    const own = ++turn.current;
    setState((old) => ({ ...old, busy: true }));
    try {
      const data = await get('journal', { ...wants, before: before ?? (seq ? seq + 4 : undefined) });
      if (own === turn.current) setState({ entries: [...kept, ...data.entries], next: data.next, error: null, busy: false });
    } catch (error) {
      if (own === turn.current) setState((old) => ({ ...old, error, busy: false }));
    }
  };
  useEffect(() => { load(null, []); }, [key]);
  // Whoever has gone back to older ones is left where they are.
  useNews(() => { if ((state.entries?.length ?? 0) <= 60 && !seq) load(null, []); });
  const change = (name, value) => {
    const next = { ...given, [name]: value };
    setGiven(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go('journal', next, { replace: true }), 250);
  };
  const field = (name, label) => html`<label class="grow"><span class="label">${label}</span><input type="search" value=${given[name] ?? ''} onInput=${(e) => change(name, e.target.value)} /></label>`;
  return html`<${Hint} of="journal" /><${Verify} />
    <div class="row wrap filters">${field('q', t('journal.search'))}${field('actor', t('journal.actor'))}${field('path', t('journal.file'))}
      <label><span class="label">${t('journal.kind')}</span><select value=${given.kind ?? ''} onChange=${(e) => change('kind', e.target.value)}><option value="">${t('journal.changes')}</option><option value="all">${t('class.all')}</option>${KINDS.map((kind) => html`<option value=${kind}>${t(`kind.${kind}`)}</option>`)}</select></label></div>
    <${Fault} error=${state.error} />
    ${state.entries === null ? html`<${Loading} />` : html`
      ${state.entries.length === 0 && html`<${Empty}>${state.next ? t('journal.go') : t('journal.none')}</${Empty}>`}
      <ol class="list entries" ref=${list}>${state.entries.map((entry) => html`<${Entry} key=${entry.seq} entry=${entry} chosen=${entry.seq === seq} />`)}</ol>
      ${state.next && html`<p><button type="button" disabled=${state.busy} onClick=${() => load(state.next, state.entries)}>${state.entries.length ? t('journal.more') : t('journal.on')}</button></p>`}`}`;
}
