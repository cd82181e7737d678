// The frame: the views, the address, the language, light and dark, and whether the server is heard.

import { html, render, useEffect, useState } from './vendor/preact.js';
import { findToken, get, listen } from './api.js';
import { watchEdges } from './edges.js';
import { Shortcuts, useShortcuts } from './keys.js';
import { Loading, go, parsePlace, place, tell, useInSight } from './ui.js';
import { language, switchLanguage, t } from './words.js';
import { Now } from './views/now.js';
import { Search } from './views/search.js';

/** Each view is loaded when it is first shown, so that the first page comes at once. */
const VIEWS = {
  now: async () => Now, flow: async () => (await import('./views/flow.js')).Flow, memory: async () => (await import('./views/memory.js')).Memory,
  graph: async () => (await import('./views/graph.js')).Graph, story: async () => (await import('./views/story.js')).Story, work: async () => (await import('./views/work.js')).Work,
  time: async () => (await import('./views/time.js')).Time, contract: async () => (await import('./views/contract.js')).ContractView, journal: async () => (await import('./views/journal.js')).Journal,
};
const loaded = { now: Now };
/** The view, once it is loaded. */
function useView(name) {
  const [, again] = useState(0);
  const known = VIEWS[name] ? name : 'now';
  useEffect(() => {
    if (!loaded[known]) VIEWS[known]().then((view) => { loaded[known] = view; again((n) => n + 1); });
  }, [known]);
  return loaded[known];
}

/** A view that this project cannot fill is left out of the menu, unless it is open. */
const FILLED = {
  flow: (has) => has.flow, time: (has) => has.flow, story: (has) => has.memory || has.threads,
  work: (has) => has.todos || has.decisions || has.sessions || has.reports,
};
const namesOf = (project, open) => Object.keys(VIEWS).filter((name) => !project || name === open || (FILLED[name]?.(project.has) ?? true));
/** What Escape closes in a view. */
const CLOSES = { memory: ['path', 'at', 'tab', 'line', 'anchor'], flow: ['step', 'unit', 'tab', 'attempt'], graph: ['node', 'focus'], journal: ['seq'], contract: ['file', 'of', 'rule'] };
function closeChosen() {
  const { view, query } = parsePlace();
  const closes = CLOSES[view] ?? [];
  if (closes.some((name) => query[name] !== undefined)) go(view, Object.fromEntries(Object.entries(query).filter(([name]) => !closes.includes(name))));
}

function keptTheme() {
  try { return localStorage.getItem('quipu.theme'); } catch { return null; }
}
function showTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
function isDark(theme) {
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

const Knots = () => html`<svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" fill="currentColor" stroke="currentColor" stroke-linecap="round">
  <path d="M3 6h26" stroke-width="3" /><path d="M9 6v20M16 6v14M23 6v23" stroke-width="2" />
  <circle cx="9" cy="13" r="2.4" /><circle cx="9" cy="21" r="2.4" /><circle cx="16" cy="15" r="2.4" /><circle cx="23" cy="12" r="2.4" /><circle cx="23" cy="20" r="2.4" /><circle cx="23" cy="26" r="1.8" /></svg>`;

function App({ known }) {
  const [at, setAt] = useState(parsePlace);
  const [, again] = useState(0);
  const [theme, setTheme] = useState(keptTheme);
  const [state, setState] = useState('offline');
  const [project, setProject] = useState(null);
  const [over, setOver] = useState(null);
  const nav = useInSight(at.view);
  const View = useView(at.view);
  const names = namesOf(project, at.view);
  useShortcuts({
    '/': () => setOver('search'), ':': () => setOver('search'), '?': () => setOver('keys'), Escape: closeChosen,
    ...Object.fromEntries(names.map((name, nth) => [String(nth + 1), () => go(name)])),
  });

  useEffect(() => {
    const moved = () => setAt(parsePlace());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  useEffect(() => {
    if (!known) return;
    const look = () => get('project').then(setProject).catch(() => {});
    look();
    listen((news) => { tell(news); look(); }, setState);
  }, [known]);
  useEffect(() => { showTheme(theme); }, [theme]);
  useEffect(() => {
    document.documentElement.lang = language();
    document.title = project ? `${t(at.view)} · ${project.name}` : 'Quipu';
  });

  if (!known || state === 'refused') {
    return html`<main class="alone"><h1>${t('token.title')}</h1><p>${t('token.what')}</p></main>`;
  }
  const turnLanguage = () => { switchLanguage(); again((n) => n + 1); };
  const turnLight = () => {
    const next = isDark(theme) ? 'light' : 'dark';
    try { localStorage.setItem('quipu.theme', next); } catch { /* a private window keeps nothing */ }
    setTheme(next);
  };
  const commands = [...names.map((name) => [t(name), place(name)]), [t('language'), null, turnLanguage], [t('theme'), null, turnLight], [t('keys'), null, () => setTimeout(() => setOver('keys'))]];
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>${t('skip')}</a>
    <header>
      <div class="brand"><${Knots} /><span>Quipu</span></div>
      <button type="button" class="find" aria-label=${t('search')} aria-keyshortcuts="/" onClick=${() => setOver('search')}><span aria-hidden="true">⌕</span> <span>${t('search')}</span> <kbd aria-hidden="true">/</kbd></button>
      <nav ref=${nav} aria-label=${t('menu')}>${names.map((name) => html`
        <a href=${place(name)} aria-current=${name === at.view ? 'page' : undefined}>${t(name)}</a>`)}</nav>
      <div class="foot">
        <span class="live l-${state}" role="status"><span aria-hidden="true">●</span> ${t(state)}</span>
        <button type="button" class="plain" lang=${language() === 'en' ? 'zh' : 'en'} onClick=${turnLanguage}>${t('language')}</button>
        <button type="button" class="plain" aria-label=${t('theme')} title=${t('theme')} onClick=${turnLight}><span aria-hidden="true">◐</span></button>
        <button type="button" class="plain" aria-label=${t('keys')} title=${t('keys')} onClick=${() => setOver('keys')}>?</button>
      </div>
    </header>
    <main id="main" tabIndex="-1">
      <div class="title">
        <h1>${t(at.view)}</h1>
        ${project && html`<p class="project" title=${project.root}>${project.name}
          ${project.profiles.length > 0 && html` <span class="muted small">· ${t('profile.of', project.profiles.map((p) => p.name).join(', '))}</span>`}${project.read_only && html` <span class="tag">${t('read.only')}</span>`}</p>`}
      </div>
      ${project && View ? html`<${View} key=${at.view} query=${at.query} project=${project} theme=${isDark(theme) ? 'dark' : 'light'} />`
        : html`<${Loading} />`}
    </main>
    ${over === 'search' && html`<${Search} onClose=${() => setOver(null)} commands=${commands} />`}
    ${over === 'keys' && html`<${Shortcuts} views=${names} onClose=${() => setOver(null)} />`}`;
}

showTheme(keptTheme());
watchEdges();
const known = await findToken();
const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} known=${known} />`, root);
