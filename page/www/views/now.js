// Now: what runs, what waits for a person, what went wrong, who holds what.

import { html, useState } from '../vendor/preact.js';
import { call } from '../api.js';
import { Card, Dialog, Elapsed, Empty, Fault, FileLink, Hint, Shown, Sign, StateTag, When, count, fileAt, place, useAct, useGet } from '../ui.js';
import { t } from '../words.js';

const named = (job) => (job.unit ? `${job.step} · ${job.unit}` : job.step);
const jobAt = (job, tab) => place('flow', { step: job.step, unit: job.unit, tab });
const isPath = (text) => !/[*{]/.test(text);

function Decision({ job }) {
  const { busy, error, act } = useAct();
  const [asking, setAsking] = useState(false);
  const [why, setWhy] = useState('');
  const decide = (operation, given) => act(() => call(operation, { gate: job.step, ...given }, job.unit ?? undefined));
  const reads = (job.gate ? job.reads : job.outputs).filter(isPath);
  return html`<li class="decision">
    <div><a href=${jobAt(job)}><strong>${named(job)}</strong></a> ${job.title && html`<span class="muted">${job.title}</span>`}
      <p>${job.about}</p>
      ${!job.gate && job.why.map((line) => html`<p class="small">${line}</p>`)}
      ${reads.length > 0 && html`<p class="small">${t('gate.read')} ${reads.map((path) => html`<${FileLink} path=${path} /> `)}</p>`}
    </div>
    <div class="buttons">
      <button type="button" class="main" disabled=${busy} onClick=${() => decide('approve', {})}>${job.gate ? t('approve') : t('overrule')}</button>
      ${job.gate && html`<button type="button" disabled=${busy} onClick=${() => setAsking(true)}>${t('reject')}</button>`}
    </div>
    <${Fault} error=${error} />
    ${asking && html`<${Dialog} title=${`${t('reject')}: ${named(job)}`} onClose=${() => setAsking(false)}>
      <form onSubmit=${(event) => { event.preventDefault(); decide('reject', { why }); setAsking(false); }}>
        <label>${t('reject.why')}<textarea rows="4" required value=${why} onInput=${(e) => setWhy(e.target.value)}></textarea></label>
        <div class="buttons"><button class="main" disabled=${!why.trim()}>${t('reject.send')}</button>
          <button type="button" onClick=${() => setAsking(false)}>${t('cancel')}</button></div>
      </form></${Dialog}>`}
  </li>`;
}

const Running = ({ attempt }) => html`<li>
  <div class="row"><${Sign} state="running" /><a href=${jobAt(attempt)}><strong>${named(attempt)}</strong></a>
    <span class="muted">${attempt.agent}</span><${Elapsed} since=${attempt.at} /></div>
  ${attempt.reads != null && html`<p class="small">${t('tokens.of', count(attempt.reads), count(attempt.budget))}</p>`}
  ${attempt.last && html`<p class="said">${attempt.last}</p>`}
</li>`;

const Worker = ({ worker }) => html`<li class="worker">
  <div class="row wrap"><${Sign} state=${worker.alive ? (worker.claims.length ? 'running' : 'ready') : 'failed'} />
    <strong>${worker.host}</strong> <span class="muted">${worker.agent} · ${worker.process}</span>
    <span class="muted small">${worker.alive ? html`${t('since', '')}<${When} at=${worker.since} />` : html`${t('worker.dead')} <${When} at=${worker.seen} />`}</span></div>
  <p class="small">${worker.claims.length === 0 ? t('worker.waits') : worker.claims.map((claim) => html`<a href=${jobAt(claim)}>${named(claim)}</a> `)}</p>
</li>`;

const Trouble = ({ job }) => html`<li>
  <div class="row"><${StateTag} state=${job.state} /><a href=${jobAt(job)}><strong>${named(job)}</strong></a></div>
  ${job.why.slice(0, 4).map((line) => html`<p class="small">${line}</p>`)}
</li>`;

function Held({ lease }) {
  const { busy, error, act } = useAct();
  const free = () => act(() => call('lease release', { token: lease.token }));
  return html`<li><div class="row"><span class="tag">${t('lease')}</span><strong>${lease.holder}</strong>
      <span class="muted">${t('until', '')}<${When} at=${lease.until} /></span>
      <button type="button" class="plain" disabled=${busy} onClick=${free}>${t('release')}</button></div>
    <p class="small">${lease.paths.map((path) => (isPath(path) ? html`<${FileLink} path=${path} /> ` : html`<code>${path}</code> `))}</p>
    <${Fault} error=${error} /></li>`;
}

const order = ['done', 'running', 'ready', 'waiting', 'stale', 'failed', 'blocked', 'pending', 'skipped'];

function Progress({ counts }) {
  const of = Object.fromEntries(counts);
  const all = counts.reduce((sum, [, number]) => sum + number, 0) || 1;
  const there = order.filter((state) => of[state]);
  return html`<div class="meter" role="img" aria-label=${there.map((s) => `${of[s]} ${t(`state.${s}`)}`).join(', ')}>
      ${there.map((state) => html`<span class="s-${state}" style=${{ width: `${(100 * of[state]) / all}%` }}></span>`)}</div>
    <p class="row wrap">${there.map((state) => html`<span class="tag s-${state}"><${Sign} state=${state} /> ${of[state]} ${t(`state.${state}`)}</span>`)}</p>`;
}

export function Now() {
  const now = useGet('now');
  return html`<${Hint} of="now" /><${Shown} from=${now}>${(data) => {
    const flow = data.flow;
    const yours = flow ? [...flow.waiting, ...flow.failed.filter((job) => job.objects)] : [];
    const trouble = flow ? [...flow.failed.filter((job) => !job.objects), ...flow.blocked, ...flow.stale] : [];
    return html`<div class="stacks"><div>
      ${yours.length > 0 && html`<${Card} title=${t('now.yours')} tone="attention"><ul class="list">${yours.map((job) => html`<${Decision} key=${named(job)} job=${job} />`)}</ul></${Card}>`}
      <${Card} title=${t('now.running')}>
        ${data.attempts.length === 0 ? html`<${Empty}>${t('now.none.running')}</${Empty}>` : html`<ul class="list">${data.attempts.map((attempt) => html`<${Running} key=${attempt.attempt} attempt=${attempt} />`)}</ul>`}
        ${data.attempts.length === 0 && flow?.ready.length > 0 && html`<p class="small">${t('now.start', '')}<code>quipu run --by NAME</code></p>`}
      </${Card}>
      ${data.workers.length > 0 && html`<${Card} title=${t('now.workers')}><ul class="list">${data.workers.map((worker) => html`<${Worker} key=${worker.id} worker=${worker} />`)}</ul></${Card}>`}
      <${Card} title=${t('now.trouble')}>
        ${trouble.length + data.flagged.length === 0 && html`<${Empty}>${t('now.none.trouble')}</${Empty}>`}
        <ul class="list">${trouble.map((job) => html`<${Trouble} key=${named(job)} job=${job} />`)}
        ${data.flagged.map((file) => html`<li><div class="row"><span class="tag s-failed">${t('class.flagged')}</span><a class="path" href=${fileAt(file.path)}>${file.path}</a></div><p class="small">${file.what}</p></li>`)}</ul>
      </${Card}>
      <${Card} title=${t('now.held')}>
        ${data.leases.length + data.sessions.length === 0 && html`<${Empty}>${t('now.none.held')}</${Empty}>`}
        <ul class="list">${data.leases.map((lease) => html`<${Held} key=${lease.token} lease=${lease} />`)}
        ${data.sessions.map((session) => html`<li><div class="row wrap"><span class="tag">${t('session')}</span><strong>${session.who}</strong>
          <span class="muted small">${t('since', '')}<${When} at=${session.since} />${session.over && ` · ${t('session.over')}`}</span></div></li>`)}</ul>
      </${Card}></div><div>
      ${flow && html`<${Card} title=${t('now.progress')}><${Progress} counts=${flow.counts} />
        ${yours.length === 0 && html`<p class="small muted">${t(flow.counts.every(([state, number]) => number === 0 || state === 'done' || state === 'skipped') ? 'now.alldone' : 'now.none.yours')}</p>`}</${Card}>`}
      <${Card} title=${t('now.recent')}><ol class="list">${data.recent.map((entry) => html`<li><div class="row wrap"><a href=${place('journal', { seq: entry.seq })}>@${entry.seq}</a>
        <strong>${entry.who}</strong> <span class="muted small"><${When} at=${entry.at} /></span></div>
        <p class="small clip">${entry.why ?? entry.paths.join(', ')}</p></li>`)}</ol></${Card}>
    </div></div>
    ${!flow && html`<p class="hint">${t('now.noflow')}</p>`}`;
  }}</${Shown}>`;
}
