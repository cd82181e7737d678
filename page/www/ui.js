// Small parts that every view is made of.

import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from './vendor/preact.js';
import { call, get } from './api.js';
import { language, t } from './words.js';

// ---- what happened: views that show something look again

const listeners = new Set();
let pending = null;
let told = 0;
/** At most once a second, however much an agent has to say; what a person did shows at once. */
export function tell(news) {
  clearTimeout(pending);
  const wait = news.seq === undefined ? 0 : Math.max(100, told + 1000 - Date.now());
  pending = setTimeout(() => { told = Date.now(); listeners.forEach((listener) => listener(news)); }, wait);
}
export function useNews(listener) {
  const newest = useRef(listener);
  newest.current = listener;
  useEffect(() => {
    const hear = (news) => newest.current(news);
    listeners.add(hear);
    return () => listeners.delete(hear);
  }, []);
}

// ---- the address: `#/view?name=value`

export function parsePlace() {
  const [, view = 'now', query = ''] = /^#\/(\w+)(?:\?(.*))?$/.exec(location.hash) ?? [];
  return { view, query: Object.fromEntries(new URLSearchParams(query)) };
}
export function place(view, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '');
  const text = new URLSearchParams(given).toString();
  return `#/${view}${text ? `?${text}` : ''}`;
}
export const fileAt = (path, more = {}) => place('memory', { path, ...more });
export function go(view, query, { replace = false } = {}) {
  const target = place(view, query);
  if (target === location.hash) return;
  if (replace) { history.replaceState(null, '', target); dispatchEvent(new HashChangeEvent('hashchange')); } else location.hash = target;
}

// ---- data that is fetched, kept while it is fetched again, and looked at again when something happens

export function useData(fetcher, wants, { live = true } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const turn = useRef(0);
  const under = useRef({ way: false, again: false });
  const load = useCallback(async (fresh) => {
    const own = ++turn.current;
    under.current = { way: true, again: false };
    if (fresh) setState({ data: null, error: null, loading: true });
    try {
      const data = await fetcher();
      if (own === turn.current) setState({ data, error: null, loading: false });
    } catch (error) {
      if (own === turn.current) setState((old) => ({ data: fresh ? null : old.data, error, loading: false }));
    }
    if (own !== turn.current) return;
    const { again } = under.current;
    under.current = { way: false, again: false };
    if (again) load(false);
  }, wants);
  useEffect(() => { load(true); return () => { turn.current += 1; }; }, [load]);
  // A server that is still at the last answer is not asked the same again.
  useNews(() => {
    if (!live) return;
    if (under.current.way) under.current.again = true;
    else load(false);
  });
  return { ...state, reload: () => load(false) };
}
export const useGet = (path, query = {}, options = {}) => useData(() => get(path, query), [path, JSON.stringify(query)], options);
export const useCall = (operation, given = {}, options = {}) =>
  useData(async () => (await call(operation, given)).data, [operation, JSON.stringify(given)], options);

// ---- small things

export const Hint = ({ of }) => html`<p class="hint">${t(`hint.${of}`)}</p>`;
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;
export const Loading = () => html`<p class="empty" role="status">${t('loading')}</p>`;

export function Fault({ error }) {
  if (!error) return null;
  const lost = error.status === 0;
  return html`<div class="fault" role="alert">
    <strong>${lost ? t('lost.title') : t('failed')}</strong>
    <p>${lost ? t('lost.what') : error.message}</p>
    ${error.rule && html`<p class="small">${t('rule')}: <code>${error.rule.place}</code> ${error.rule.rule}</p>`}
    ${!lost && error.remedy && html`<p class="small">${t('do')}: <code>${error.remedy}</code></p>`}
  </div>`;
}

/** What is there, what went wrong, or that it comes. */
export function Shown({ from, children }) {
  if (from.error && !from.data) return html`<${Fault} error=${from.error} />`;
  if (!from.data) return html`<${Loading} />`;
  return html`${from.error && html`<${Fault} error=${from.error} />`}${children(from.data)}`;
}

const SIGNS = { done: '✓', running: '▶', ready: '○', pending: '·', stale: '↻', failed: '✕', blocked: '⊘', waiting: '?', skipped: '–' };
export const Sign = ({ state }) => html`<span class="sign s-${state}" aria-hidden="true">${SIGNS[state] ?? '·'}</span>`;
export const StateTag = ({ state }) => html`<span class="tag s-${state}"><${Sign} state=${state} /> ${t(`state.${state}`)}</span>`;
export const ClassTag = ({ of }) => html`<span class="tag c-${of}" title=${t(`about.${of}`)}>${t(`class.${of}`)}</span>`;
export const FileLink = ({ path, line, anchor, at, children }) =>
  html`<a class="path" href=${fileAt(path, { anchor, line, at })}>${children ?? `${path}${line ? `:${line}` : ''}${anchor ? `#${anchor}` : ''}`}</a>`;

const moments = {};
export function when(text) {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return text ?? '';
  moments[language()] ??= new Intl.DateTimeFormat(language(), { dateStyle: 'medium', timeStyle: 'short' });
  return moments[language()].format(moment);
}
export const When = ({ at }) => html`<time dateTime=${at} title=${at}>${when(at)}</time>`;
export const count = (number) => new Intl.NumberFormat(language()).format(number ?? 0);

export function Elapsed({ since }) {
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
  const seconds = Math.max(0, Math.round((Date.now() - new Date(since).getTime()) / 1000));
  const text = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, '0')} s`;
  return html`<span class="number">${text}</span>`;
}

export function Tabs({ of, chosen, onChoose, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = of.findIndex(([name]) => name === chosen);
    const [name] = of[(at + step + of.length) % of.length];
    onChoose(name);
    event.currentTarget.querySelector(`[data-tab="${name}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>${of.map(([name, said]) => html`
    <button role="tab" type="button" data-tab=${name} aria-selected=${name === chosen} tabIndex=${name === chosen ? 0 : -1}
      onClick=${() => onChoose(name)}>${said}</button>`)}</div>`;
}

/** A question over the page. Escape and a click beside it say no. */
export function Dialog({ title, onClose, children }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => before?.focus?.();
  }, []);
  const beside = (event) => { if (event.target === box.current) onClose(); };
  return html`<dialog ref=${box} aria-label=${title} onClose=${onClose} onCancel=${onClose} onClick=${beside}>
    <div class="dialog"><h2>${title}</h2>${children}</div></dialog>`;
}

/** A unified diff, line by line. */
export function Difference({ text }) {
  if (!text) return html`<${Empty}>${t('diff.none')}</${Empty}>`;
  const lines = text.split('\n').slice(0, 2000);
  const kind = (line) => (line.startsWith('+') ? 'added' : line.startsWith('-') ? 'gone' : line.startsWith('@@') ? 'at' : '');
  return html`<pre class="diff" tabIndex="0">${lines.map((line) => html`<span class=${kind(line)}>${line}\n</span>`)}</pre>`;
}

/** Runs something that changes the project, one at a time, and keeps what went wrong. */
export function useAct() {
  const [state, setState] = useState({ busy: false, error: null });
  const act = async (work) => {
    setState({ busy: true, error: null });
    try {
      const done = await work();
      setState({ busy: false, error: null });
      tell({});
      return done;
    } catch (error) {
      setState({ busy: false, error });
      return null;
    }
  };
  return { ...state, act };
}

export const Card = ({ title, children, tone = '' }) =>
  html`<section class="card ${tone}"><h2>${title}</h2>${children}</section>`;
