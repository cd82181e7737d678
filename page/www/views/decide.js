// A decision that waits for a person: at Now, at the gate, and at the file that it is about.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Dialog, Fault, FileLink, Sentence, place, useAct } from '../ui.js';
import { own, said } from '../sentences.js';
import { t } from '../words.js';

export const named = (job) => (job.unit ? `${t(`step.${job.step}`)} · ${job.unit}` : t(`step.${job.step}`));
export const jobAt = (job, tab) => place('flow', { step: job.step, unit: job.unit, tab });
export const isPath = (text) => !/[*{]/.test(text);

/** What a person may decide about a job, by its state. */
export const decides = (job) => job.state === 'waiting' || job.state === 'stale' || job.objects || job.excusable;
const yes = (job) => (job.gate && job.state === 'waiting' ? t('approve') : job.state === 'stale' ? t('keep') : job.objects ? t('overrule') : t('excuse'));

/** The buttons. An approval may have a note, a rejection needs one: the next attempt receives it. */
export function Decide({ job }) {
  const { busy, error, act } = useAct();
  const [asking, setAsking] = useState(null);
  const [why, setWhy] = useState('');
  const decide = (operation, given) => act(() => call(operation, { gate: job.step, ...given }, job.unit ?? undefined));
  const send = async (event) => {
    event.preventDefault();
    if (await decide(asking, { why: why.trim() || undefined })) { setAsking(null); setWhy(''); }
  };
  const rejects = job.gate && job.state === 'waiting';
  return html`<div class="buttons">
      <button type="button" class="main" disabled=${busy} onClick=${() => decide('approve', {})}>${yes(job)}</button>
      <button type="button" disabled=${busy} onClick=${() => setAsking('approve')}>${t('with.note')}</button>
      ${rejects && html`<button type="button" disabled=${busy} onClick=${() => setAsking('reject')}>${t('reject')}</button>`}</div>
    ${!asking && html`<${Fault} error=${error} />`}
    ${asking && html`<${Dialog} title=${`${asking === 'reject' ? t('reject') : yes(job)}: ${named(job)}`} onClose=${() => setAsking(null)}>
      <form onSubmit=${send}>
        <label>${t(asking === 'reject' ? 'reject.why' : 'approve.why')}<textarea rows="4" required value=${why} onInput=${(e) => setWhy(e.target.value)}></textarea></label>
        <${Fault} error=${error} />
        <div class="buttons"><button class="main" disabled=${busy || !why.trim()}>${asking === 'reject' ? t('reject.send') : yes(job)}</button>
          <button type="button" onClick=${() => setAsking(null)}>${t('cancel')}</button></div>
      </form></${Dialog}>`}`;
}

/** A job with what it is about, why it waits, and its buttons. */
export function Decision({ job }) {
  const reads = (job.gate ? job.reads : job.outputs).filter(isPath);
  return html`<div class="decision">
    <div><a href=${jobAt(job)}><strong>${named(job)}</strong></a> ${job.title && html`<span class="muted">${own(job.title)}</span>`}
      <p>${own(job.about)}</p>
      ${!job.gate && job.why.map((line) => html`<p class="small"><${Sentence} of=${said(line)} /></p>`)}
      ${reads.length > 0 && html`<p class="small">${t('gate.read')} ${reads.map((path) => html`<${FileLink} path=${path} /> `)}</p>`}
    </div>
    <div><${Decide} job=${job} /></div></div>`;
}
