// Flow: units and steps with their states, and everything about one job.

import { html, useLayoutEffect, useRef } from '../vendor/preact.js';
import { Elapsed, Empty, FileLink, Hint, Sentence, Shown, Sign, StateTag, Tabs, When, count, go, useGet } from '../ui.js';
import { useRoving } from '../keys.js';
import { Decide, decides, jobAt, named } from './decide.js';
import { Overlap, Printed, RunButton } from './run.js';
import { own, said } from '../sentences.js';
import { t } from '../words.js';

const share = (part, whole) => (whole > 0 ? Math.min(100, (100 * part) / whole) : 0);

/** How a text was fitted into the budget, with its numbers in the order in which the sentence has them. */
const strategy = ({ name, number, shown, of, whole, overview, hidden }) => t(`plan.${name}`, ...[number, shown, of, whole, overview, hidden].filter((one) => one !== undefined));

function Plan({ plan, foreseen }) {
  if (!plan) return html`<${Empty}>${t('job.nobrief')}</${Empty}>`;
  const shares = (plan.shares ?? []).flat();
  const used = shares.reduce((sum, one) => sum + one.shown, 0);
  const pointers = plan.pointers ?? [];
  // The same scale as the bar above.
  const most = Math.max(plan.budget, ...shares.map((one) => one.whole));
  return html`${foreseen && html`<p class="hint">${t('job.notyet')}</p>`}
    <p>${t('plan.budget', count(plan.budget), count(used))}</p>
    <div class="bar" role="img" aria-label=${t('plan.budget', count(plan.budget), count(used))}><span style=${{ width: `${share(used, plan.budget)}%` }}></span></div>
    <ul class="pointers">${shares.map((one, nth) => {
      const pointer = pointers[nth % Math.max(1, pointers.length)] ?? {};
      return html`<li>
        <div class="row wrap"><code class="path">${pointer.name}</code><span class="muted small">${own(pointer.why)}</span></div>
        <div class="bar thin" role="img" aria-label=${`${count(one.shown)} / ${count(one.whole)} ${t('tokens')}`}>
          <span class="whole" style=${{ width: `${share(one.whole, most)}%` }}></span><span style=${{ width: `${share(one.shown, most)}%` }}></span></div>
        <p class="small"><span class="number">${count(one.shown)}</span>${one.shown < one.whole && html` / <span class="number">${count(one.whole)}</span>`} ${t('tokens')}
          ${' · '}${one.strategy && strategy(one.strategy)}</p></li>`;
    })}</ul>
    ${(plan.absent ?? []).length > 0 && html`<h3>${t('plan.absent')}</h3><ul>${plan.absent.map((one) => html`<li class="small"><code>${one.name}</code> ${one.what}</li>`)}</ul>`}`;
}

/** Whether a run can do something about a job: gates wait for people, and a job waits for those before it. */
const runs = (job) => !job.gate && ['ready', 'failed', 'stale', 'done'].includes(job.state);

function Overview({ data, query }) {
  const { job, fact, verdict } = data;
  const note = fact?.note;
  // A failure is said once: its reason, its verdict and what it was sent back with are often the same text.
  const isNew = (text) => text && !job.why.some((line) => line.includes(text.trim()));
  return html`<p>${own(job.about)}</p>
    <p class="row wrap"><${StateTag} state=${job.state} /> ${job.through.length > 0 && html`<span class="small muted">← ${job.through.join(', ')}</span>`}</p>
    ${decides(job) && html`<${Decide} job=${job} />`}
    ${runs(job) && html`<div class="buttons"><${RunButton} job=${job} main=${!decides(job)} again=${job.state === 'done'} agent=${data.failure?.agent} label=${t(`run.${job.state}`)} /></div>`}
    ${job.why.length > 0 && html`<h3>${t('job.why')}</h3><ul>${job.why.map((line) => html`<li><${Sentence} of=${said(line)} /></li>`)}</ul><${Printed} of=${data.failure} />`}
    ${job.outputs.length > 0 && html`<h3>${t(['done', 'stale'].includes(job.state) ? 'job.outputs' : 'job.towrite')}</h3><ul>${job.outputs.map((path) => html`<li><${FileLink} path=${path} /></li>`)}</ul>`}
    ${(verdict || note) && html`<h3>${t('job.verdict')}</h3>
      <p>${t(`ruling.${verdict?.ruling ?? note?.ruling}`)}${note?.agent && ` · ${note.agent}`}${note?.usage && ` · ${count(note.usage.input)} + ${count(note.usage.output)} ${t('tokens')}`}
      ${fact && html` · <a href=${`#/journal?seq=${fact.seq}`}>@${fact.seq}</a> <${When} at=${fact.at} />`}</p>
      ${isNew(verdict?.why ?? note?.why) && html`<p class="said"><${Sentence} of=${said(verdict?.why ?? note?.why)} /></p>`}`}
    ${isNew(data.fault) && html`<h3>${t('job.fault')}</h3><p class="said"><${Sentence} of=${said(data.fault)} /></p>`}
    ${note?.denied?.length > 0 && html`<h3>${t('job.denied')}</h3><ul>${note.denied.map((line) => html`<li class="small"><code>${line}</code></li>`)}</ul>`}
    ${note?.dropped?.length > 0 && html`<h3>${t('job.dropped')}</h3><ul>${note.dropped.map((line) => html`<li class="small"><code>${line}</code></li>`)}</ul>`}
    ${note?.reads?.length > 0 && html`<h3>${t('job.read')}</h3><ul>${note.reads.map((one) => html`<li><${FileLink} path=${one.path} anchor=${one.section} at=${one.version} /></li>`)}</ul>`}
    ${data.attempts.length > 1 && html`<h3>${t('job.attempts')}</h3><ul>${data.attempts.map((attempt, nth) => html`<li><a href=${`#/flow?${new URLSearchParams({ ...query, attempt })}`} aria-current=${attempt === data.attempt ? 'true' : undefined}>${t('time.attempt')} ${data.attempts.length - nth}</a> <code class="small muted path">${attempt}</code></li>`)}</ul>`}`;
}

/** The transcript follows the agent while its end is in sight; who reads further up is left there. */
function Transcript({ lines }) {
  const box = useRef(null);
  const follows = useRef(true);
  useLayoutEffect(() => { if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight; }, [lines]);
  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => { follows.current = scrollHeight - scrollTop - clientHeight < 40; };
  if (!lines?.length) return html`<${Empty}>${t('job.notranscript')}</${Empty}>`;
  return html`<ol class="transcript" ref=${box} tabIndex="0" onScroll=${scrolled}>${lines.map((line) => {
    const who = html`<span class="who">${line.who}${line.ms != null && html` <span class="muted">${(line.ms / 1000).toFixed(1)} s</span>`}</span>`;
    // The brief has a tab of its own; here it would hide what the agent said.
    return line.who === 'brief' ? html`<li><details><summary>${who}</summary><pre>${line.text}</pre></details></li>` : html`<li>${who}<pre>${line.text}</pre></li>`;
  })}</ol>`;
}

function Job({ query }) {
  const job = useGet('job', { step: query.step, unit: query.unit, attempt: query.attempt });
  const tab = query.tab ?? 'overview';
  const choose = (name) => go('flow', { ...query, tab: name });
  const close = () => go('flow', {});
  return html`<aside class="panel" aria-label=${query.step}>
    <div class="row spread"><h2>${t(`step.${query.step}`)}${query.unit && ` · ${query.unit}`}</h2><button type="button" class="plain" onClick=${close}>${t('close')} ✕</button></div>
    <${Tabs} label=${query.step} chosen=${tab} onChoose=${choose} of=${[['overview', t('job.overview')], ['plan', t('job.plan')], ['brief', t('job.brief')], ['transcript', t('job.transcript')]]} />
    <div role="tabpanel" class="body"><${Shown} from=${job}>${(data) => ({
      overview: () => html`<${Overview} data=${data} query=${query} />`,
      plan: () => html`<${Plan} plan=${data.plan} foreseen=${data.foreseen} />`,
      brief: () => (data.brief ? html`${data.foreseen && html`<p class="hint">${t('job.notyet')}</p>`}<pre class="paper" tabIndex="0">${data.brief}</pre>` : html`<${Empty}>${t('job.nobrief')}</${Empty}>`),
      transcript: () => html`<${Transcript} lines=${data.transcript} />`,
    }[tab] ?? (() => null))()}</${Shown}></div>
  </aside>`;
}

function Cell({ cell, query, label, running }) {
  if (!cell) return html`<span class="muted" aria-hidden="true"> </span>`;
  const chosen = query.step === cell.step && (query.unit ?? null) === (cell.unit ?? null);
  const name = `${t(`step.${cell.step}`)}${cell.unit ? ` ${cell.unit}` : ''}: ${t(`state.${cell.state}`)}`;
  return html`<button type="button" class="cell s-${cell.state}" aria-pressed=${chosen} aria-label=${name} title=${[name, own(cell.about), ...cell.why.map(said)].join('\n')}
    onClick=${() => go('flow', { step: cell.step, unit: cell.unit, tab: query.tab })}><${Sign} state=${cell.state} />${label && html`<span>${label}</span>`}${running && html`<span class="small number"><${Elapsed} since=${running.at} /> ${running.agent}</span>`}</button>`;
}

/** What stops the flow, each with the jobs that wait for it, folded. */
function Causes({ causes }) {
  if (causes.length === 0) return null;
  return html`<section class="card attention causes" aria-label=${t('flow.causes')}><h2>${t('flow.causes')}</h2><ul class="list">${causes.slice(0, 8).map((job) => html`<li><div class="row wrap"><${StateTag} state=${job.state} /><a href=${jobAt(job)}><strong>${named(job)}</strong></a> <span class="small"><${Sentence} of=${said(job.why[0])} /></span></div>
    ${job.blocks.all > 0 && html`<details><summary>${t('now.blocks', count(job.blocks.all))}</summary><ul class="plainlist columns3">${job.blocks.shown.map((one) => html`<li><a href=${jobAt(one)}>${named(one)}</a></li>`)}</ul></details>`}</li>`)}<${Overlap} causes=${causes} /></ul>
    ${causes.length > 8 && html`<p class="small muted">${t('and.more', count(causes.length - 8))}</p>`}</section>`;
}

export function Flow({ query, project }) {
  const flow = useGet('flow');
  const board = useRoving('button.cell');
  if (!project.has.flow) return html`<${Hint} of="flow" /><${Empty}>${t('flow.none')}</${Empty}>`;
  return html`<${Hint} of="flow" /><${Shown} from=${flow}>${({ steps, units, cells, attempts, causes }) => {
    const runs = new Map(attempts.map((one) => [`${one.step}/${one.unit ?? ''}`, one]));
    const at = new Map(cells.map((cell) => [`${cell.step}/${cell.unit ?? ''}`, cell]));
    const once = steps.filter((step) => !step.each);
    const each = steps.filter((step) => step.each);
    const states = [...new Set(cells.map((cell) => cell.state))];
    const phases = [...new Set(once.map((step) => step.phase ?? ''))];
    return html`<div class=${query.step ? 'split' : ''}>
      <div class="board" ref=${board}>
        <p class="row wrap legend">${states.map((state) => html`<${StateTag} state=${state} />`)}</p>
        <${Causes} causes=${causes} />
        ${cells.length === 0 && html`<${Empty}>${t('flow.empty')}</${Empty}>`}
        ${each.length > 0 && units.length > 0 && html`<h2>${t('flow.units')}</h2><div class="wide sticky" tabIndex="0" role="group" aria-label=${t('flow.units')}><table class="cells">
          <thead><tr><th scope="col">${t('unit')}</th>${each.map((step) => html`<th scope="col" title=${own(step.about)}><span>${t(`step.${step.name}`)}</span></th>`)}</tr></thead>
          <tbody>${units.map((unit) => html`<tr key=${unit.id}><th scope="row"><span class="path">${unit.id}</span> <span class="muted">${own(unit.title)}</span></th>
            ${each.map((step) => html`<td><${Cell} cell=${at.get(`${step.name}/${unit.id}`)} running=${runs.get(`${step.name}/${unit.id}`)} query=${query} /></td>`)}</tr>`)}</tbody></table></div>`}
        ${once.length > 0 && html`<h2>${t('flow.once')}</h2>${phases.map((phase) => html`<div class="once">${phase && html`<span class="phase">${t(`phase.${phase}`)}</span>`}<div class="row wrap">${once.filter((step) => (step.phase ?? '') === phase).map((step) => html`<${Cell} key=${step.name} cell=${at.get(`${step.name}/`)} running=${runs.get(`${step.name}/`)} query=${query} label=${t(`step.${step.name}`)} />`)}</div></div>`)}`}
      </div>
      ${query.step && html`<${Job} key=${`${query.step}/${query.unit}`} query=${query} />`}
    </div>`;
  }}</${Shown}>`;
}
