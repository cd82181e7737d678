// A flagged file: what was changed outside Quipu, and the two ways to end it.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Difference, Dialog, Fault, Sentence, Shell, Shown, useAct, useCall, useGet } from '../ui.js';
import { said } from '../sentences.js';
import { t } from '../words.js';

/** The newest version beside the bytes on disk. */
function Edit({ path, known }) {
  const difference = useCall('diff', { path, from: known ? '~0' : undefined });
  return html`<${Shown} from=${difference}>${({ diff }) => html`<${Difference} text=${diff} />`}</${Shown}>`;
}

function RestoreEdit({ path, onClose }) {
  const { busy, error, act } = useAct();
  const restore = async () => { if (await act(() => call('restore', { path }))) onClose(); };
  return html`<${Dialog} title=${t('flag.restore.sure', path)} onClose=${onClose}>
    <p>${t('flag.restore.what')}</p><${Edit} path=${path} known=${true} /><${Fault} error=${error} />
    <div class="buttons"><button type="button" class="main" disabled=${busy} onClick=${restore}>${t('restore.do')}</button>
      <button type="button" onClick=${onClose}>${t('cancel')}</button></div></${Dialog}>`;
}

function AcceptEdit({ path, onClose }) {
  const { busy, error, act } = useAct();
  const [why, setWhy] = useState('');
  const accept = async (event) => {
    event.preventDefault();
    if (await act(() => call('amend', { path, why }))) onClose();
  };
  return html`<${Dialog} title=${t('flag.accept.sure', path)} onClose=${onClose}>
    <p>${t('flag.accept.what')}</p><${Edit} path=${path} known=${true} />
    <form onSubmit=${accept}><label>${t('flag.accept.why')}<textarea rows="2" required value=${why} onInput=${(e) => setWhy(e.target.value)}></textarea></label>
      <${Fault} error=${error} />
      <div class="buttons"><button class="main" disabled=${busy || !why.trim()}>${t('flag.accept')}</button><button type="button" onClick=${onClose}>${t('cancel')}</button></div></form></${Dialog}>`;
}

/** `open`: the change is shown at once, as at the file; else it opens on request. */
export function Flagged({ path, open }) {
  const found = useGet('flagged', { path });
  const [asking, setAsking] = useState(null);
  const [seen, setSeen] = useState(open);
  const flag = found.data?.flag;
  if (!flag) return html`<${Fault} error=${found.error} />`;
  return html`<div class="flagged">
    <p class="fault">${path} <${Sentence} of=${said(flag.what)} />${flag.line && ` (${t('line', flag.line)})`}</p>
    <div class="buttons">
      ${!open && html`<button type="button" aria-expanded=${seen} onClick=${() => setSeen(!seen)}>${t('flag.show')}</button>`}
      ${flag.restore && html`<button type="button" onClick=${() => setAsking('restore')}>${t('flag.restore')} …</button>`}
      ${flag.accept && html`<button type="button" onClick=${() => setAsking('accept')}>${t('flag.accept')} …</button>`}</div>
    <${Shell} of=${flag.remedy} />
    ${seen && html`<h3>${t('flag.change')}</h3><${Edit} path=${path} known=${Boolean(flag.version)} />`}
    ${asking === 'restore' && html`<${RestoreEdit} path=${path} onClose=${() => setAsking(null)} />`}
    ${asking === 'accept' && html`<${AcceptEdit} path=${path} onClose=${() => setAsking(null)} />`}</div>`;
}
