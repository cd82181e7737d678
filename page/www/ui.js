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
    // What is there stays until the new data is, so that nothing that a person holds or reads is taken away.
    if (fresh) setState((old) => ({ data: old.data, error: null, loading: true }));
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

const SIGNS = { done: '✓', running: '▶', ready: '○', pending: '·', stale: '↻', failed: '✕', blocked: '⊘', waiting: '?', skipped: '»' };
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
const STEPS = [['day', 86_400], ['hour', 3_600], ['minute', 60]];
/** How long ago, within a week; before that, the date. */
export function ago(text) {
  const moment = new Date(text);
  const seconds = (Date.now() - moment.getTime()) / 1000;
  if (Number.isNaN(seconds) || Math.abs(seconds) > 7 * 86_400) return when(text);
  const [unit, long] = STEPS.find(([, long]) => Math.abs(seconds) >= long) ?? ['second', 1];
  // A clock that runs a little behind the server's must not speak of the future.
  const number = unit === 'second' ? (Math.abs(seconds) < 10 ? 0 : -Math.round(seconds)) : -Math.round(seconds / long);
  return new Intl.RelativeTimeFormat(language(), { numeric: 'auto' }).format(number, unit);
}
export const When = ({ at }) => html`<time dateTime=${at} title=${when(at)}>${ago(at)}</time>`;
export const count = (number) => new Intl.NumberFormat(language()).format(number ?? 0);

/** A duration in words of two units at most. */
export function took(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (number) => String(number).padStart(2, '0');
  if (seconds < 10 && !Number.isInteger(seconds)) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
}
export function Elapsed({ since }) {
  const [, tick] = useState(0);
  useEffect(() => { const timer = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(timer); }, []);
  return html`<span class="number">${took(Math.round((Date.now() - new Date(since).getTime()) / 1000))}</span>`;
}

/** A sentence of the engine: its names in code, its lines apart. */
export function Sentence({ of }) {
  const parts = of.split('`');
  return html`<span class="sentence">${parts.length % 2 ? parts.map((part, nth) => (nth % 2 ? html`<code>${part}</code>` : part)) : of}</span>`;
}

/** What does the same on the command line, folded: the buttons are there for those who do not want it. */
export const Shell = ({ of }) => html`<details class="small"><summary>${t('shell')}</summary><code>${of}</code></details>`;

/** Where a rule is written. The project's own contract can be opened; built-in profiles are in the program. */
export function RulePlace({ at }) {
  const [, line] = /^quipu\.toml:(\d+)$/.exec(at) ?? [];
  return line ? html`<${FileLink} path="quipu.toml" line=${line} />` : html`<code title=${t('contract.builtin')}>${at}</code>`;
}

/** Brings the chosen one of a row into sight, where the row is wider than the screen. */
export function useInSight(chosen) {
  const row = useRef(null);
  useEffect(() => {
    const one = row.current?.querySelector('[aria-selected="true"], [aria-current]');
    if (!one) return;
    const [outer, inner] = [row.current.getBoundingClientRect(), one.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right) row.current.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
  }, [chosen, language()]);
  return row;
}

/** Each choice is a step of the browser's history, in every view. */
export function Tabs({ of, chosen, onChoose, label }) {
  const row = useInSight(chosen);
  const choose = (name) => { if (name !== chosen) onChoose(name); };
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = of.findIndex(([name]) => name === chosen);
    const [name] = of[(at + step + of.length) % of.length];
    choose(name);
    event.currentTarget.querySelector(`[data-tab="${name}"]`)?.focus();
  };
  return html`<div class="tabs" role="tablist" ref=${row} aria-label=${label} onKeyDown=${move}>${of.map(([name, said]) => html`
    <button role="tab" type="button" data-tab=${name} aria-selected=${name === chosen} tabIndex=${name === chosen ? 0 : -1}
      onClick=${() => choose(name)}>${said}</button>`)}</div>`;
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

/** As many lines of a difference are shown at first, and more on request. */
const DIFF_LINES = 1000;

const SIDES = 'quipu.sides';
const keptSides = () => { try { return localStorage.getItem(SIDES) === 'yes'; } catch { return false; } };

/** The lines of a unified diff as rows of two sides; what was removed is beside what was added in its place. */
function twoSides(lines, kinds) {
  const rows = [];
  let [old, fresh] = [0, 0];
  for (let nth = 0; nth < lines.length; nth += 1) {
    const line = lines[nth];
    if (kinds[nth] === 'at') {
      const [, a, b] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line) ?? [];
      if (a) [old, fresh] = [Number(a), Number(b)];
      if (a) rows.push({ head: line });
    } else if (kinds[nth] === '') {
      rows.push({ left: [old++, line.slice(1)], right: [fresh++, line.slice(1)] });
    } else {
      const [gone, added] = [[], []];
      while (nth < lines.length && (kinds[nth] === 'gone' || kinds[nth] === 'added')) { (kinds[nth] === 'gone' ? gone : added).push(lines[nth].slice(1)); nth += 1; }
      nth -= 1;
      for (let at = 0; at < Math.max(gone.length, added.length); at += 1) rows.push({ changed: true, left: at < gone.length ? [old++, gone[at]] : null, right: at < added.length ? [fresh++, added[at]] : null });
    }
  }
  return rows;
}

function Sides({ lines, kinds }) {
  const side = (one, changed, name) => html`<td class="nr">${one?.[0]}</td><td class="code ${changed && one ? name : ''}">${one?.[1]}</td>`;
  return html`<div class="diff two" tabIndex="0" role="group" aria-label=${t('diff.sides')}><table><tbody>${twoSides(lines, kinds).map((row) => (row.head ? html`<tr class="at"><td colspan="4">${row.head}</td></tr>`
    : html`<tr>${side(row.left, row.changed, 'gone')}${side(row.right, row.changed, 'added')}</tr>`))}</tbody></table></div>`;
}

/** A unified diff, line by line or with both sides. What is not shown yet is counted. */
export function Difference({ text }) {
  const [most, setMost] = useState(DIFF_LINES);
  const [sides, setSides] = useState(keptSides);
  if (!text) return html`<${Empty}>${t('diff.none')}</${Empty}>`;
  const lines = text.replace(/\n$/, '').split('\n');
  const kind = (line) => (/^(\+\+\+|---) /.test(line) ? 'at' : line.startsWith('+') ? 'added' : line.startsWith('-') ? 'gone' : line.startsWith('@@') ? 'at' : '');
  const kinds = lines.map(kind);
  const number = (name) => count(kinds.filter((one) => one === name).length);
  const left = lines.length - most;
  const turn = () => { try { localStorage.setItem(SIDES, sides ? 'no' : 'yes'); } catch { /* a private window keeps nothing */ } setSides(!sides); };
  return html`<p class="small counts"><span class="good">+${number('added')}</span> <span class="bad">−${number('gone')}</span> <span class="buttons small"><button type="button" aria-pressed=${sides} onClick=${turn}>${t('diff.sides')}</button></span> ${left > 0 && html`<strong>${t('diff.part', count(most), count(lines.length))}</strong>`}</p>
    ${sides ? html`<${Sides} lines=${lines.slice(0, most)} kinds=${kinds} />` : html`<pre class="diff" tabIndex="0">${lines.slice(0, most).map((line, nth) => html`<span class=${kinds[nth]}>${line}\n</span>`)}</pre>`}
    ${left > 0 && html`<p class="buttons"><button type="button" onClick=${() => setMost(most + 10 * DIFF_LINES)}>${t('lines.more', count(left))}</button></p>`}`;
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
