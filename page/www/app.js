// The frame: the views, the address, the language, light and dark, and whether the server is heard.

import { html, render, useEffect, useState } from './vendor/preact.js';
import { findToken, get, listen } from './api.js';
import { Shortcuts, useShortcuts } from './keys.js';
import { Empty, go, parsePlace, place, tell, useInSight } from './ui.js';
import { language, switchLanguage, t } from './words.js';
import { Now } from './views/now.js';
import { Flow } from './views/flow.js';
import { Memory } from './views/memory.js';
import { Graph } from './views/graph.js';
import { Story } from './views/story.js';
import { Work } from './views/work.js';
import { Journal } from './views/journal.js';
import { Search } from './views/search.js';

const VIEWS = { now: Now, flow: Flow, memory: Memory, graph: Graph, story: Story, work: Work, journal: Journal };

const NAMES = Object.keys(VIEWS);
/** What Escape closes in a view. */
const CLOSES = { memory: ['path', 'at', 'tab', 'line', 'anchor'], flow: ['step', 'unit', 'tab', 'attempt'], graph: ['node', 'focus'], journal: ['seq'] };
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
  useShortcuts({
    '/': () => setOver('search'), '?': () => setOver('keys'), Escape: closeChosen,
    ...Object.fromEntries(NAMES.map((name, nth) => [String(nth + 1), () => go(name)])),
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
  const View = VIEWS[at.view] ?? Now;
  const turnLight = () => {
    const next = isDark(theme) ? 'light' : 'dark';
    try { localStorage.setItem('quipu.theme', next); } catch { /* a private window keeps nothing */ }
    setTheme(next);
  };
  return html`
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>${t('skip')}</a>
    <header>
      <div class="brand"><${Knots} /><span>Quipu</span></div>
      <button type="button" class="find" aria-label=${t('search')} aria-keyshortcuts="/" onClick=${() => setOver('search')}><span aria-hidden="true">⌕</span> <span>${t('search')}</span> <kbd aria-hidden="true">/</kbd></button>
      <nav ref=${nav} aria-label=${t('menu')}>${NAMES.map((name) => html`
        <a href=${place(name)} aria-current=${name === at.view ? 'page' : undefined}>${t(name)}</a>`)}</nav>
      <div class="foot">
        <span class="live l-${state}" role="status"><span aria-hidden="true">●</span> ${t(state)}</span>
        <button type="button" class="plain" lang=${language() === 'en' ? 'zh' : 'en'} onClick=${() => { switchLanguage(); again((n) => n + 1); }}>${t('language')}</button>
        <button type="button" class="plain" aria-label=${t('theme')} title=${t('theme')} onClick=${turnLight}><span aria-hidden="true">◐</span></button>
        <button type="button" class="plain" aria-label=${t('keys')} title=${t('keys')} onClick=${() => setOver('keys')}>?</button>
      </div>
    </header>
    <main id="main" tabIndex="-1">
      <div class="title">
        <h1>${t(at.view)}</h1>
        ${project && html`<p class="project" title=${project.root}>${project.name}
          <span class="muted"> ${project.profiles.map((p) => p.name).join(', ')}</span>${project.read_only && html` <span class="tag">${t('read.only')}</span>`}</p>`}
      </div>
      ${project ? html`<${View} key=${at.view} query=${at.query} project=${project} theme=${isDark(theme) ? 'dark' : 'light'} />`
        : html`<${Empty}>${t('loading')}</${Empty}>`}
    </main>
    ${over === 'search' && html`<${Search} onClose=${() => setOver(null)} />`}
    ${over === 'keys' && html`<${Shortcuts} views=${NAMES} onClose=${() => setOver(null)} />`}`;
}

showTheme(keptTheme());
const known = await findToken();
const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} known=${known} />`, root);
