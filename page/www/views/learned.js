// Facts that were found in manuscripts and wait to enter memory.

import { html } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Fault, FileLink, useAct, useCall } from '../ui.js';
import { t } from '../words.js';

function Proposal({ one }) {
  const { busy, error, act } = useAct();
  const [path, anchor] = one.to.split('#');
  return html`<li><p class="said">${one.entry}</p>
    <p class="small">${t('learn.to')} <${FileLink} path=${path} anchor=${anchor} /></p>
    <div class="buttons"><button type="button" class="main" disabled=${busy} onClick=${() => act(() => call('learn', { accept: one.id }))}>${t('learn.accept')}</button>
      <button type="button" disabled=${busy} onClick=${() => act(() => call('learn', { reject: one.id }))}>${t('learn.reject')}</button></div>
    <${Fault} error=${error} /></li>`;
}

/** Nothing, where nothing waits. */
export function Proposals() {
  const found = useCall('learn', { list: true });
  const waiting = found.data?.proposals ?? [];
  if (waiting.length === 0) return null;
  return html`<${Card} title=${t('learn.title')} tone="attention"><ul class="list">${waiting.map((one) => html`<${Proposal} key=${one.id} one=${one} />`)}</ul></${Card}>`;
}
