// Runs from the page: which agent, what it will cost, what it does now, and how it is stopped.

import { html, useState } from '../vendor/preact.js';
import { get, post } from '../api.js';
import { Card, Dialog, Elapsed, Empty, Fault, Shown, count, useAct, useData, useGet } from '../ui.js';
import { jobAt, named } from './decide.js';
import { t } from '../words.js';

/** What colours a terminal. */
const COLOURS = /\u001b\[[0-9;?]*[A-Za-z]/g;
const KEY = 'quipu.agent';
const usual = () => { try { return localStorage.getItem(KEY) ?? 'rehearse'; } catch { return 'rehearse'; } };
const keep = (name) => { try { localStorage.setItem(KEY, name); } catch { /* a private window keeps nothing */ } };

/** What a dry run prints for the choice. */
function Cost({ estimate }) {
  return html`<${Shown} from=${estimate}>${(data) => {
    if (data.jobs.length === 0) return html`<${Empty}>${t('run.nothing')}</${Empty}>`;
    const faults = data.jobs.filter((job) => job.fault);
    return html`<p><strong>${t('run.jobs', data.jobs.length)}</strong> ${t('run.tokens', count(data.input), count(data.output))}${data.cost !== undefined ? ` · ${t('run.cost', data.cost.toFixed(2))}` : html` <span class="muted small">${t('time.noprice')}</span>`}</p>
      ${data.jobs.length > 1 && html`<details><summary>${t('run.list')}</summary><ul class="plainlist columns3">${data.jobs.map((job) => html`<li>${named(job.job)} <span class="muted small number">${count(job.input + job.output)}</span></li>`)}</ul></details>`}
      ${faults.map((job) => html`<p class="notice">${named(job.job)}: ${job.fault}</p>`)}`;
  }}</${Shown}>`;
}

function Form({ job, stale, again, agent, agents, onClose }) {
  const { busy, error, act } = useAct();
  // The agent that did it last does it again; if this page cannot start it, a person chooses.
  const [by, setBy] = useState(() => { const first = agent ?? usual(); return agents.some((one) => one.name === first && one.found) ? first : agent ? '' : 'rehearse'; });
  const [jobs, setJobs] = useState('1');
  const wants = { by, step: job?.step, unit: job?.unit ?? undefined, again: again || undefined };
  const estimate = useData(() => (by ? get('estimate', wants) : Promise.resolve(null)), [JSON.stringify(wants)], { live: false });
  const send = async (event) => {
    event.preventDefault();
    keep(by);
    if (await act(() => post('run', { ...wants, again: Boolean(again), stale: Boolean(stale), jobs: Number(jobs) }))) onClose();
  };
  return html`<form class="fields" onSubmit=${send}>
    <label>${t('run.by')}<select required value=${by} onChange=${(e) => setBy(e.target.value)}>${!by && html`<option value="">${t('run.pick')}</option>`}${agents.map((one) => html`<option value=${one.name} disabled=${!one.found}>${one.name}${one.name === 'rehearse' ? ` (${t('run.offline')})` : one.about ? ` (${one.about})` : ''}${one.found ? '' : `: ${t('run.absent')}`}</option>`)}</select></label>
    ${!by && html`<p class="notice">${t('run.notlisted', agent)}</p>`}
    ${!job && html`<label>${t('run.parallel')}<input type="number" min="1" max="8" value=${jobs} onInput=${(e) => setJobs(e.target.value)} /></label>`}
    ${by && html`<section aria-label=${t('run.expected')}><h3>${t('run.expected')}</h3><${Cost} estimate=${estimate} /></section>`}
    <p class="small muted">${t('run.how')}</p>
    <${Fault} error=${error} />
    <div class="buttons"><button class="main" disabled=${busy || !by || estimate.loading || estimate.data?.jobs.length === 0}>${t('run.do')}</button><button type="button" onClick=${onClose}>${t('cancel')}</button></div></form>`;
}

/** The last lines that the program of a failed attempt printed. */
export function Printed({ of }) {
  if (!of?.printed) return null;
  const { agent, printed } = of;
  if (printed.length === 0) return html`<p class="small muted">${t('failure.silent', agent)}</p>`;
  return html`<p class="small">${t('failure.printed', agent)}</p><p class="said">${printed.join('\n').replace(COLOURS, '')}</p>`;
}

/** Counts of jobs that wait for several causes cannot be added up. */
export const Overlap = ({ causes }) => (causes.filter((job) => job.blocks?.all > 0).length > 1 ? html`<li class="small muted">${t('now.overlap')}</li>` : null);

/** A button that starts one job, all stale jobs, or everything that is ready. It costs first, and asks. */
export function RunButton({ job, stale, again, agent, label, main }) {
  const [asking, setAsking] = useState(false);
  const known = useGet('run');
  const running = known.data?.run?.running;
  return html`<button type="button" class=${main ? 'main' : ''} disabled=${running} title=${running ? t('run.busy') : undefined} onClick=${() => setAsking(true)}>${label} …</button>
    ${asking && known.data && html`<${Dialog} title=${job ? `${label}: ${named(job)}` : label} onClose=${() => setAsking(false)}>
      <${Form} job=${job} stale=${stale} again=${again} agent=${agent} agents=${known.data.agents} onClose=${() => setAsking(false)} /></${Dialog}>`}`;
}

/** Says what an event of a run means; a line that is none is shown as it is. */
function Line({ of }) {
  if (of.text) return html`<li class="small">${of.text}</li>`;
  if (of.error) return html`<li><${Fault} error=${{ message: of.error, remedy: of.do, rule: of.rule }} /></li>`;
  if (of.event === 'ended') return html`<li class="small"><strong>${t('event.ended', of.summary?.accepted ?? 0, of.summary?.failed ?? 0)}</strong></li>`;
  const more = of.why ?? of.line ?? of.fault ?? of.what ?? of.files?.join(', ') ?? of.agent ?? '';
  return html`<li class="small"><span class="tag ${{ accepted: 's-done', failed: 's-failed', started: 's-running' }[of.event] ?? ''}">${t(`event.${of.event}`)}</span> ${of.job && html`<a href=${jobAt(of.job)}>${named(of.job)}</a>`} <span class="muted">${more}</span></li>`;
}

const SHOWN = 8;
/** The newest run of this page: nothing, where there was none. */
export function PageRun() {
  const known = useGet('run');
  const { busy, error, act } = useAct();
  const run = known.data?.run;
  if (!run) return null;
  const { lines } = run;
  const { by, step, unit } = run.order;
  return html`<${Card} title=${t('run.title')}>
    <div class="row wrap"><span class="tag ${run.running ? 's-running' : run.exit === 0 ? 's-done' : 's-failed'}">${t(run.stopping ? 'run.stopping' : run.running ? 'state.running' : run.exit === 0 ? 'run.ended' : 'run.notdone')}</span>
      <strong>${step ? named({ step, unit }) : t('run.all')}</strong><span class="muted">${by}</span>${run.running && html`<${Elapsed} since=${run.since} />`}
      ${run.running && html`<span class="buttons small"><button type="button" disabled=${busy} onClick=${() => act(() => post('run/stop'))}>${t('run.stop')}</button></span>`}</div>
    <${Fault} error=${error} />
    <ul class="plainlist" aria-live="polite">${lines.slice(-SHOWN).map((line) => html`<${Line} of=${line} />`)}</ul>
    ${lines.length > SHOWN && html`<details><summary>${t('run.log', lines.length)}</summary><ul class="plainlist">${lines.map((line) => html`<${Line} of=${line} />`)}</ul></details>`}</${Card}>`;
}
