// The keyboard: lists with one tab stop, shortcuts of one key, and what Escape closes.

import { html, useEffect, useLayoutEffect, useRef, useState } from './vendor/preact.js';
import { Dialog } from './ui.js';
import { t } from './words.js';

const STOPS = 'a[href], button, select, input, textarea, summary';
const stops = (item) => (item.matches(STOPS) ? [item] : [...item.querySelectorAll(STOPS)].filter((stop) => !stop.closest('dialog')));

/** Makes one tab stop of the items in a box: arrow keys go from one to the next. Where the items are cells, up and down stay in the column. */
export function useRoving(selector) {
  const box = useRef(null);
  const at = useRef(0);
  const items = () => [...(box.current?.querySelectorAll(selector) ?? [])];
  const settle = () => {
    const all = items();
    at.current = Math.max(0, Math.min(at.current, all.length - 1));
    all.forEach((item, nth) => stops(item).forEach((stop) => { if (nth === at.current) stop.removeAttribute('tabindex'); else stop.setAttribute('tabindex', '-1'); }));
  };
  useLayoutEffect(settle);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const focus = (event) => {
      const nth = items().findIndex((item) => item.contains(event.target));
      if (nth >= 0 && nth !== at.current) { at.current = nth; settle(); }
    };
    const key = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
      const all = items();
      if (!all.some((item) => item.contains(event.target))) return;
      const row = all[at.current].closest('tr');
      const beside = (rows, step) => {
        const next = rows[rows.indexOf(row) + step];
        const cell = next?.children[all[at.current].closest('td').cellIndex]?.querySelector(selector);
        return cell ? all.indexOf(cell) : -1;
      };
      const rows = row ? [...row.parentNode.children] : [];
      const next = {
        ArrowDown: () => (row ? beside(rows, 1) : at.current + 1), ArrowUp: () => (row ? beside(rows, -1) : at.current - 1),
        ArrowRight: () => at.current + 1, ArrowLeft: () => at.current - 1, Home: () => 0, End: () => all.length - 1,
      }[event.key]?.();
      if (next === undefined) return;
      event.preventDefault();
      if (!all[next]) return;
      at.current = next;
      settle();
      const [stop] = stops(all[next]);
      stop?.focus();
      stop?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    };
    element.addEventListener('focusin', focus);
    element.addEventListener('keydown', key);
    return () => { element.removeEventListener('focusin', focus); element.removeEventListener('keydown', key); };
  });
  return box;
}

const KEY = 'quipu.shortcuts';
const allowed = () => { try { return localStorage.getItem(KEY) !== 'off'; } catch { return true; } };

/** Hears single keys while nobody writes and no dialog is open. `keys` maps a key to what it does; Escape is heard even where shortcuts are switched off. */
export function useShortcuts(keys) {
  const newest = useRef(keys);
  newest.current = keys;
  useEffect(() => {
    const hear = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
      const writing = event.target.matches?.('input:not([type="range"]), textarea, select');
      const act = newest.current[event.key];
      if (!act || (event.key === 'Escape' ? false : writing || !allowed())) return;
      event.preventDefault();
      if (writing) event.target.blur();
      act();
    };
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  }, []);
}

/** All shortcuts, and the switch for those of one character. */
export function Shortcuts({ views, onClose }) {
  const [on, setOn] = useState(allowed);
  const turn = () => {
    try { localStorage.setItem(KEY, on ? 'off' : 'on'); } catch { /* a private window keeps nothing */ }
    setOn(!on);
  };
  const rows = [['/', t('keys.search')], ['?', t('keys.help')], ...views.map((name, nth) => [String(nth + 1), t(name)]),
    ['Esc', t('keys.escape')], ['← → ↑ ↓', t('keys.arrows')], ['Home End', t('keys.ends')], ['Enter', t('keys.enter')], ['+ −', t('keys.zoom')]];
  return html`<${Dialog} title=${t('keys')} onClose=${onClose}>
    <table class="keys"><tbody>${rows.map(([key, what]) => html`<tr><th scope="row">${key.split(' ').map((one) => html`<kbd>${one}</kbd> `)}</th><td>${what}</td></tr>`)}</tbody></table>
    <label class="row"><input type="checkbox" checked=${on} onChange=${turn} /> ${t('keys.on')}</label>
    <div class="buttons"><button type="button" onClick=${onClose}>${t('close')}</button></div></${Dialog}>`;
}
