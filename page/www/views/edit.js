// A file edited in the page: replaced, extended or amended, as its class allows.

import { html, useEffect, useState } from '../vendor/preact.js';
import { call, get } from '../api.js';
import { Dialog, Empty, Fault, Shown, useAct, useData } from '../ui.js';
import { t } from '../words.js';

// A text field has one kind of line ends. Those of the file are put back when it is saved.
const ends = (text) => (!/\r/.test(text) ? '\n' : !/\r(?!\n)|(?<!\r)\n/.test(text) ? '\r\n' : null);

function Form({ path, operation, from, onClose }) {
  const { busy, error, act } = useAct();
  const adds = operation === 'append';
  const [text, setText] = useState(adds ? '' : from.text.replace(/\r\n/g, '\n'));
  const [why, setWhy] = useState('');
  // The version that was read, not a newer one: what has changed since must not be lost.
  const [expect] = useState(from.version);
  const [end] = useState(() => ends(from.text));
  const [dirty, setDirty] = useState(false);
  useEffect(() => {
    if (!dirty) return undefined;
    const ask = (event) => event.preventDefault();
    addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [dirty]);
  if (end === null) return html`<${Empty}>${t('edit.ends')}</${Empty}>`;
  const save = async (event) => {
    event.preventDefault();
    const given = { path, text: text.replace(/\n/g, end), why: why.trim() || undefined, expect: operation === 'write' ? expect : undefined };
    if (await act(() => call(operation, given))) onClose();
  };
  return html`<form class="fields edit" onSubmit=${save}>
    <label>${t('edit.text')}<textarea class=${adds ? 'short' : ''} spellcheck="false" value=${text} onInput=${(e) => { setText(e.target.value); setDirty(true); }}></textarea></label>
    <label>${t('edit.why')}<input value=${why} required=${operation === 'amend'} onInput=${(e) => setWhy(e.target.value)} /></label>
    ${operation === 'write' && html`<p class="small muted">${t('edit.based', expect)}</p>`}
    <${Fault} error=${error} />
    <div class="buttons"><button class="main" disabled=${busy || !dirty || (operation === 'amend' && !why.trim())}>${t(`edit.do.${operation}`)}</button><button type="button" onClick=${onClose}>${t('cancel')}</button></div></form>`;
}

export function EditDialog({ path, operation, onClose }) {
  const from = useData(() => get('text', { path }), [path], { live: false });
  return html`<${Dialog} title=${t(`edit.${operation}`, path)} onClose=${onClose}>
    <${Shown} from=${from}>${(data) => html`<${Form} path=${path} operation=${operation} from=${data} onClose=${onClose} />`}</${Shown}></${Dialog}>`;
}
